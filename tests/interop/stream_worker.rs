//! A worker on the `stream` transport against the real CLI: orders in, events out.

use claw_runtime::event::NullSink;
use claw_tests::mock_api::{Gate, MessagesStream, PATIENCE, Reply};
use claw_workers::process::Marker;
use claw_workers::stream::{self, Launch};
use claw_workers::{
    Ending, Fact, FailureKind, OpenAs, PromptSource, Story, Transport, TurnEnd, Verdict, Worker,
    WorkerConfig, WorkerError, WorkerEvent,
};
use serde_json::json;
use tokio::sync::mpsc;

use crate::cli::{Room, on_both_versions};

on_both_versions!(
    prompts_are_answered_and_become_messages,
    a_question_that_nobody_answers_is_denied,
    a_tool_runs_with_the_input_that_was_allowed,
    an_interrupt_ends_the_turn_and_the_next_prompt_is_answered,
    a_prompt_that_no_tool_absorbs_is_followed_as_the_same_turn,
    a_failure_ends_the_turn_with_its_kind,
    a_compaction_ends_as_one,
    a_background_agent_leads_to_a_turn_nobody_asked_for,
    a_session_that_does_not_exist_ends_at_the_start,
);

const SESSION: &str = "6f3c8a52-7f1d-4c0b-9d0e-1a2b3c4d5e6f";

struct Driven {
    worker: Worker,
    events: mpsc::UnboundedReceiver<WorkerEvent>,
}

impl Driven {
    async fn start(room: &Room, open: OpenAs) -> Self {
        let config = config(room, room.api.base_url());
        let launch =
            Launch::prepare(&config, &open, Marker::new()).await.expect("the CLI is there");
        let (worker, events) = stream::start(config, launch, open);
        Self { worker, events }
    }

    async fn next(&mut self) -> WorkerEvent {
        let next = tokio::time::timeout(PATIENCE, self.events.recv()).await;
        next.expect("it says something").expect("it lives")
    }

    async fn find<T>(&mut self, pick: impl Fn(WorkerEvent) -> Option<T>) -> T {
        loop {
            if let Some(found) = pick(self.next().await) {
                return found;
            }
        }
    }

    async fn submit(&mut self, text: &str) {
        self.worker.submit(text.to_owned()).await.expect("it is taken");
    }

    /// The facts until the end of a turn, and how it ended; questions are allowed.
    async fn turn(&mut self) -> (Vec<Fact>, TurnEnd, bool) {
        let mut facts = Vec::new();
        loop {
            match self.next().await {
                WorkerEvent::Fact { fact, .. } => facts.push(fact),
                WorkerEvent::Asked(asked) => {
                    asked.reply.send(Verdict::Allow { updated_input: None }).expect("it waits");
                }
                WorkerEvent::TurnEnded { end, unasked } => return (facts, end, unasked),
                WorkerEvent::Ended(error) => panic!("{error}: {facts:?}"),
                _ => {}
            }
        }
    }
}

/// A worker of this room with the model at this address.
pub fn config(room: &Room, base_url: &str) -> WorkerConfig {
    let mut environment = room.environment(base_url);
    environment.push(("CLAUDE_CODE_MAX_RETRIES".into(), "1".into()));
    let mut config = room.config(Transport::Stream);
    config.pass.push("CLAUDE_CODE_MAX_RETRIES".to_owned());
    WorkerConfig { environment, tap: false, ..config }
}

fn new() -> OpenAs {
    OpenAs::New(SESSION.to_owned())
}

fn said(text: &str) -> TurnEnd {
    TurnEnd::Completed { last_message: Some(text.to_owned()) }
}

fn bash(command: &str) -> Reply {
    let input = json!({"command": command, "description": "a command"}).to_string();
    MessagesStream::new().tool_use("toolu_1", "Bash", &input).stop("tool_use", 9).reply()
}

async fn prompts_are_answered_and_become_messages(room: &Room) {
    room.api.push(
        MessagesStream::new()
            .thinking(&["hm"], "signed")
            .text(&["One", "."])
            .stop("end_turn", 5)
            .reply(),
    );
    room.api.push(MessagesStream::say("Two."));
    let mut driven = Driven::start(room, new()).await;
    for (prompt, reply, blocks) in [("first\nprompt \\", "One.", 2), ("second", "Two.", 1)] {
        driven.submit(prompt).await;
        let (facts, end, unasked) = driven.turn().await;
        assert_eq!((end, unasked), (said(reply), false));
        let mut story = Story::new();
        facts.into_iter().for_each(|fact| story.tell(fact, &NullSink));
        let turn = story.finish(&Ending::Completed { last_message: None }, &NullSink);
        assert_eq!(turn.messages.len(), 1);
        assert_eq!(turn.messages[0].text(), reply);
        assert_eq!(turn.messages[0].blocks.len(), blocks);
        assert!(turn.messages[0].usage.is_some_and(|usage| usage.output_tokens > 1));
    }
    assert!(room.questions()[0].last_user_text().ends_with("first\nprompt \\"));
    driven.worker.stop().await;
}

async fn a_question_that_nobody_answers_is_denied(room: &Room) {
    room.api.push(bash("touch made-by-tool"));
    room.api.push(MessagesStream::say("as you wish"));
    let mut driven = Driven::start(room, new()).await;
    driven.submit("make it").await;
    let asked = |event| match event {
        WorkerEvent::Asked(asked) => Some(asked),
        _ => None,
    };
    drop(driven.find(asked).await);
    let (facts, end, _) = driven.turn().await;
    assert_eq!(end, said("as you wish"));
    let denied =
        |fact: &Fact| matches!(fact, Fact::ToolResult { denied: Some(_), is_error: true, .. });
    assert!(facts.iter().any(denied), "{facts:?}");
    assert!(!room.workspace().join("made-by-tool").exists());
}

async fn a_tool_runs_with_the_input_that_was_allowed(room: &Room) {
    room.api.push(bash("touch made-by-model"));
    room.api.push(MessagesStream::say("done"));
    let mut driven = Driven::start(room, new()).await;
    driven.submit("make it").await;
    let asked = |event| match event {
        WorkerEvent::Asked(asked) => Some(asked),
        _ => None,
    };
    let asked = driven.find(asked).await;
    let changed = asked.input.replace("made-by-model", "made-by-person");
    asked.reply.send(Verdict::Allow { updated_input: Some(changed) }).expect("it waits");
    assert_eq!(driven.turn().await.1, said("done"));
    assert!(room.workspace().join("made-by-person").exists());
    assert!(!room.workspace().join("made-by-model").exists());
}

async fn an_interrupt_ends_the_turn_and_the_next_prompt_is_answered(room: &Room) {
    let gate = Gate::new();
    room.api.push(MessagesStream::new().open_text(&["half "]).wait(&gate).reply());
    room.api.push(MessagesStream::say("whole"));
    let mut driven = Driven::start(room, new()).await;
    driven.submit("begin").await;
    let text = |event| {
        matches!(event, WorkerEvent::Fact { fact: Fact::TextDelta { .. }, .. }).then_some(())
    };
    driven.find(text).await;
    driven.worker.interrupt();
    assert_eq!(driven.turn().await.1, TurnEnd::Interrupted);
    driven.submit("again").await;
    assert_eq!(driven.turn().await.1, said("whole"));
}

async fn a_prompt_that_no_tool_absorbs_is_followed_as_the_same_turn(room: &Room) {
    let gate = Gate::new();
    room.api.push(
        MessagesStream::new()
            .open_text(&["first "])
            .wait(&gate)
            .block_stop(0)
            .stop("end_turn", 3)
            .reply(),
    );
    room.api.push(MessagesStream::say("second"));
    let mut driven = Driven::start(room, new()).await;
    driven.submit("begin").await;
    let text = |event| {
        matches!(event, WorkerEvent::Fact { fact: Fact::TextDelta { .. }, .. }).then_some(())
    };
    driven.find(text).await;
    let open = async {
        // The line has gone out before the answer goes on.
        tokio::task::yield_now().await;
        gate.open();
    };
    let (steered, ()) = tokio::join!(driven.worker.steer("one thing more".to_owned()), open);
    assert_eq!(steered, Ok(()));
    let (facts, end, unasked) = driven.turn().await;
    assert_eq!((end, unasked), (said("second"), false));
    let queued = |fact: &Fact| matches!(fact, Fact::Prompt { source: PromptSource::Queued, text, .. } if text == "one thing more");
    assert!(facts.iter().any(queued), "{facts:?}");
}

async fn a_failure_ends_the_turn_with_its_kind(room: &Room) {
    let mut driven = Driven::start(room, new()).await;
    let busy = || Reply::error(529, "overloaded_error", "Overloaded").header("retry-after", "0");
    (0..4).for_each(|_| room.api.push(busy()));
    driven.submit("go").await;
    let (facts, end, _) = driven.turn().await;
    let TurnEnd::Failed(fact) = &end else { panic!("{end:?}") };
    assert!(matches!(&**fact, Fact::ApiFailure { kind: FailureKind::Server, .. }), "{fact:?}");
    assert!(facts.iter().any(|fact| matches!(fact, Fact::Retry { .. })));
    room.answer_asides_and(|_| MessagesStream::say("better"));
    driven.submit("again").await;
    assert_eq!(driven.turn().await.1, said("better"));
}

async fn a_compaction_ends_as_one(room: &Room) {
    room.answer_asides_and(|_| MessagesStream::say("Some words."));
    let mut driven = Driven::start(room, new()).await;
    for prompt in ["one", "two", "three", "four", "five"] {
        driven.submit(prompt).await;
        assert_eq!(driven.turn().await.1, said("Some words."));
    }
    driven.worker.compact();
    let (facts, end, unasked) = driven.turn().await;
    assert_eq!((end, unasked), (TurnEnd::Compacted, false), "{facts:?}");
    let compacted =
        |fact: &Fact| matches!(fact, Fact::Compacted { automatic: false, before_tokens: 1.., .. });
    assert!(facts.iter().any(compacted), "{facts:?}");
    driven.submit("six").await;
    assert_eq!(driven.turn().await.1, said("Some words."));
}

async fn a_background_agent_leads_to_a_turn_nobody_asked_for(room: &Room) {
    room.answer_asides_and(|request| {
        let said = request.last_user_text();
        if said.contains("the small job") {
            return MessagesStream::say("The job is done.");
        }
        if said.contains("task-notification") {
            return MessagesStream::say("It has reported.");
        }
        if request.body["messages"].to_string().contains("toolu_1") {
            return MessagesStream::say("It works on it.");
        }
        let input = json!({
            "description": "Small job",
            "prompt": "Do the small job.",
            "subagent_type": "general-purpose",
            "run_in_background": true,
        });
        MessagesStream::new()
            .tool_use("toolu_1", "Agent", &input.to_string())
            .stop("tool_use", 9)
            .reply()
    });
    let mut driven = Driven::start(room, new()).await;
    driven.submit("delegate it").await;
    let (mut facts, end, unasked) = driven.turn().await;
    assert_eq!((end, unasked), (said("It works on it."), false));
    let (more, end, unasked) = driven.turn().await;
    assert_eq!((end, unasked), (said("It has reported."), true));
    facts.extend(more);
    let spawned = |fact: &Fact| matches!(fact, Fact::AgentSpawned { background: true, .. });
    assert!(facts.iter().any(spawned), "{facts:?}");
    let done = facts.iter().filter(|fact| matches!(fact, Fact::AgentDone { .. })).count();
    assert_eq!(done, 1, "{facts:?}");
    driven.submit("and now").await;
    let (_, _, unasked) = driven.turn().await;
    assert!(!unasked);
}

async fn a_session_that_does_not_exist_ends_at_the_start(room: &Room) {
    let mut driven = Driven::start(room, OpenAs::Resume(SESSION.to_owned())).await;
    let ended = |event| match event {
        WorkerEvent::Ended(error) => Some(error),
        _ => None,
    };
    let error = driven.find(ended).await;
    let WorkerError::StartFailed { screen, .. } = &error else { panic!("{error:?}") };
    assert!(screen.contains(SESSION), "{error}");
}
