//! The hooks of the real CLI, through the settings file, the program and the socket of a worker.

use claw_tests::mock_api::{MessagesStream, PATIENCE, Reply};
use claw_workers::dialog::{Dialog, DialogKind};
use claw_workers::hooks::record::{HookEvent, HookRecord};
use claw_workers::hooks::server::{HookArrival, HookReply, HookServer, ReplyError};
use claw_workers::hooks::{SETTINGS, settings::settings};
use claw_workers::private_dir::PrivateDir;
use claw_workers::version::{find_cli, known_hook_events};
use claw_workers::{OpenAs, Transport, Verdict, WorkerError};
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::cli::{Room, on_both_versions};
use crate::start::open_with;
use crate::terminal::{Terminal, at_input_box};

on_both_versions!(
    the_events_of_a_turn_arrive_in_its_order,
    an_allowed_tool_runs_with_the_input_that_was_allowed,
    a_denied_tool_does_not_run_and_the_model_hears_why,
    a_denial_that_interrupts_ends_the_turn,
    a_question_that_nobody_answers_stays_in_its_own_dialog,
    a_question_that_the_person_ends_in_the_dialog_is_told_as_gone,
    the_models_own_question_is_answered_with_the_changed_input,
    a_failed_turn_ends_with_its_kind,
);

/// The CLI with our hooks.
struct Hooked {
    terminal: Terminal,
    arrivals: UnboundedReceiver<Result<HookArrival, WorkerError>>,
    _server: HookServer,
    _folder: PrivateDir,
}

impl Hooked {
    /// Starts it and waits for its first word.
    async fn start(room: &Room) -> Self {
        room.trust_workspace();
        let mut config = room.config(Transport::Pty);
        config.environment.push(("CLAUDE_CODE_MAX_RETRIES".into(), "1".into()));
        config.pass.push("CLAUDE_CODE_MAX_RETRIES".to_owned());
        let cli = find_cli(&config).await.expect("the CLI says its version");
        assert_eq!(cli.version.to_string(), room.version.number());
        let folder = PrivateDir::create(&config.private_root).expect("a private folder");
        let (server, arrivals) = HookServer::open(&folder, &config.timings).expect("a socket");
        let events = known_hook_events(cli.version);
        let registered = settings(&config, folder.path(), events).expect("settings");
        let file = folder.write(SETTINGS, registered.as_bytes()).expect("a settings file");
        let id = uuid::Uuid::new_v4().to_string();
        let terminal = open_with(room, &config, &OpenAs::New(id.clone()), Some(&file));
        let mut hooked = Self { terminal, arrivals, _server: server, _folder: folder };
        let (first, _) = hooked.next().await;
        assert_eq!(first.session_id, id);
        let started =
            matches!(&first.event, HookEvent::SessionStart { source, .. } if source == "startup");
        assert!(started, "{first:?}");
        hooked.terminal.until("input box", at_input_box).await;
        hooked
    }

    async fn next(&mut self) -> (HookRecord, Option<HookReply>) {
        match tokio::time::timeout(PATIENCE, self.arrivals.recv()).await {
            Ok(Some(Ok(arrival))) => (arrival.record, arrival.reply),
            Ok(other) => panic!("{other:?}"),
            Err(_) => panic!("no hook:\n{}", self.terminal.text()),
        }
    }

    /// Reads on until an event is found.
    async fn until<T>(&mut self, find: impl Fn(HookEvent) -> Option<T>) -> T {
        loop {
            if let Some(found) = find(self.next().await.0.event) {
                return found;
            }
        }
    }

    /// The next question, and the way to answer it.
    async fn question(&mut self) -> (String, String, HookReply) {
        loop {
            let (record, reply) = self.next().await;
            if let HookEvent::PermissionRequest { tool, .. } = record.event {
                return (tool.name, tool.input, reply.expect("it waits"));
            }
            assert!(reply.is_none());
        }
    }

    async fn stopped(&mut self) -> Option<String> {
        self.until(|event| match event {
            HookEvent::Stop { last_assistant_message, .. } => Some(last_assistant_message),
            _ => None,
        })
        .await
    }
}

fn bash(command: &str) -> Reply {
    let input = json!({"command": command, "description": "a command"}).to_string();
    MessagesStream::new().tool_use("toolu_1", "Bash", &input).stop("tool_use", 9).reply()
}

async fn the_events_of_a_turn_arrive_in_its_order(room: &Room) {
    let mut hooked = Hooked::start(room).await;
    room.api.push(bash("touch made-by-tool"));
    room.api.push(MessagesStream::say("It is made."));
    hooked.terminal.submit("make it").await;
    let mut names = Vec::new();
    let mut prompt_id = None;
    loop {
        let (record, reply) = hooked.next().await;
        let name = match &record.event {
            HookEvent::UserPromptSubmit { prompt } => {
                assert_eq!(prompt, "make it");
                prompt_id.clone_from(&record.prompt_id);
                "prompt"
            }
            HookEvent::PreToolUse { tool_use_id, .. } => {
                assert_eq!(tool_use_id, "toolu_1");
                "tool"
            }
            HookEvent::PermissionRequest { .. } => {
                let allow = Verdict::Allow { updated_input: None };
                reply.expect("it waits").answer(&allow).expect("it is taken");
                "question"
            }
            HookEvent::PostToolUse { tool_use_id, .. } => {
                assert_eq!(tool_use_id, "toolu_1");
                "done"
            }
            HookEvent::Stop { last_assistant_message, .. } => {
                assert_eq!(last_assistant_message.as_deref(), Some("It is made."));
                "stop"
            }
            HookEvent::MessageDisplay { .. } => continue,
            other => panic!("{other:?}"),
        };
        assert!(prompt_id.is_some() && record.prompt_id == prompt_id, "{record:?}");
        names.push(name);
        if name == "stop" {
            break;
        }
    }
    assert_eq!(names, ["prompt", "tool", "question", "done", "stop"]);
    assert!(room.workspace().join("made-by-tool").exists());
    hooked.terminal.submit("/exit").await;
    let reason = hooked.until(|event| match event {
        HookEvent::SessionEnd { reason } => Some(reason),
        _ => None,
    });
    assert_eq!(reason.await, "prompt_input_exit");
    assert_eq!(hooked.terminal.ended().await.code, Some(0));
}

async fn an_allowed_tool_runs_with_the_input_that_was_allowed(room: &Room) {
    let mut hooked = Hooked::start(room).await;
    room.api.push(bash("touch as-asked"));
    room.api.push(MessagesStream::say("done"));
    hooked.terminal.submit("make it").await;
    let (tool, input, reply) = hooked.question().await;
    assert!(tool == "Bash" && input.contains("touch as-asked"), "{tool} {input}");
    let changed = json!({"command": "touch as-allowed", "description": "a command"}).to_string();
    let allow = Verdict::Allow { updated_input: Some(changed) };
    reply.answer(&allow).expect("it is taken");
    assert_eq!(hooked.stopped().await.as_deref(), Some("done"));
    assert!(room.workspace().join("as-allowed").exists());
    assert!(!room.workspace().join("as-asked").exists());
}

async fn a_denied_tool_does_not_run_and_the_model_hears_why(room: &Room) {
    let mut hooked = Hooked::start(room).await;
    room.api.push(bash("touch made-by-tool"));
    room.api.push(MessagesStream::say("as you wish"));
    hooked.terminal.submit("make it").await;
    let (.., reply) = hooked.question().await;
    let deny = Verdict::Deny { message: "rather not today".to_owned(), interrupt: false };
    reply.answer(&deny).expect("it is taken");
    assert_eq!(hooked.stopped().await.as_deref(), Some("as you wish"));
    assert!(!room.workspace().join("made-by-tool").exists());
    assert!(room.questions()[1].body.to_string().contains("rather not today"));
}

async fn a_denial_that_interrupts_ends_the_turn(room: &Room) {
    let mut hooked = Hooked::start(room).await;
    room.api.push(bash("touch made-by-tool"));
    hooked.terminal.submit("make it").await;
    let (.., reply) = hooked.question().await;
    let deny = Verdict::Deny { message: "stop".to_owned(), interrupt: true };
    reply.answer(&deny).expect("it is taken");
    hooked.terminal.until_shows("Interrupted").await;
    hooked.terminal.until("input box", at_input_box).await;
    room.api.push(MessagesStream::say("the next answer"));
    hooked.terminal.submit("the next prompt").await;
    assert_eq!(hooked.stopped().await.as_deref(), Some("the next answer"));
    assert!(!room.workspace().join("made-by-tool").exists());
    assert_eq!(room.questions().len(), 2);
}

async fn a_question_that_nobody_answers_stays_in_its_own_dialog(room: &Room) {
    let mut hooked = Hooked::start(room).await;
    room.api.push(bash("touch made-by-tool"));
    hooked.terminal.submit("make it").await;
    let (.., reply) = hooked.question().await;
    drop(reply);
    let dialog = hooked.terminal.until("dialog", Dialog::on_screen).await;
    assert_eq!(dialog.kind, DialogKind::Permission, "{}", dialog.text);
    assert!(!room.workspace().join("made-by-tool").exists());
}

async fn a_question_that_the_person_ends_in_the_dialog_is_told_as_gone(room: &Room) {
    let mut hooked = Hooked::start(room).await;
    room.api.push(bash("touch made-by-tool"));
    hooked.terminal.submit("make it").await;
    let (.., reply) = hooked.question().await;
    hooked.terminal.until("dialog", Dialog::on_screen).await;
    hooked.terminal.write(b"\x1b").await;
    tokio::time::timeout(PATIENCE, reply.closed()).await.expect("the CLI ends its hook");
    assert_eq!(reply.answer(&Verdict::Allow { updated_input: None }), Err(ReplyError::Gone));
    assert!(!room.workspace().join("made-by-tool").exists());
}

async fn the_models_own_question_is_answered_with_the_changed_input(room: &Room) {
    let mut hooked = Hooked::start(room).await;
    let question = json!({"questions": [{
        "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [
            {"label": "Red", "description": "the warm one"},
            {"label": "Blue", "description": "the cold one"},
        ],
    }]});
    let asks = MessagesStream::new().tool_use("toolu_1", "AskUserQuestion", &question.to_string());
    room.api.push(asks.stop("tool_use", 9).reply());
    room.api.push(MessagesStream::say("so be it"));
    hooked.terminal.submit("ask me").await;
    let (tool, input, reply) = hooked.question().await;
    assert_eq!(tool, "AskUserQuestion");
    let mut answered: serde_json::Value = serde_json::from_str(&input).expect("JSON");
    answered["answers"] = json!({"Which colour?": "Blue"});
    let allow = Verdict::Allow { updated_input: Some(answered.to_string()) };
    reply.answer(&allow).expect("it is taken");
    assert_eq!(hooked.stopped().await.as_deref(), Some("so be it"));
    let heard = room.questions()[1].body.to_string();
    assert!(heard.contains("Which colour?") && heard.contains("Blue"), "{heard}");
}

async fn a_failed_turn_ends_with_its_kind(room: &Room) {
    let mut hooked = Hooked::start(room).await;
    for _ in 0..2 {
        let busy = Reply::error(529, "overloaded_error", "Overloaded");
        room.api.push(busy.header("retry-after", "0"));
    }
    hooked.terminal.submit("go").await;
    let error = hooked.until(|event| match event {
        HookEvent::StopFailure { error, .. } => Some(error),
        HookEvent::Stop { .. } => panic!("it did not end well"),
        _ => None,
    });
    assert_eq!(error.await, "server_error");
}
