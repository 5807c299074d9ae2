//! The registry as the turn loop sees it: real files, real processes, recorded events.

mod bash;
mod files;
mod searches;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::event::StreamSink;
use crate::permissions::DenyAll;
use crate::tools::row::Tool;

/// A hang shows as a failure after this time; nothing here takes nearly as long.
const HANG: Duration = Duration::from_secs(30);
const SECRET: &str = "planted-marker-value-1";

/// Records events, and cancels when live output contains `ready`.
struct Recorder {
    events: Mutex<Vec<TuiEvent>>,
    cancel_when_ready: Option<CancellationToken>,
}

impl StreamSink for Recorder {
    fn emit(&self, event: TuiEvent) {
        if let (Some(cancel), TuiEvent::ToolOutput { text, .. }) = (&self.cancel_when_ready, &event)
            && text.contains("ready")
        {
            cancel.cancel();
        }
        self.events.lock().unwrap().push(event);
    }
}

struct Bench {
    dir: TempDir,
    registry: ToolRegistry,
    recorder: Arc<Recorder>,
    cx: TurnContext,
}

fn bench() -> Bench {
    bench_with(false)
}

fn bench_with(cancels_when_ready: bool) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let registry = ToolRegistry::new(dir.path(), Redactor::new([SECRET])).unwrap();
    let cancel = CancellationToken::new();
    let recorder = Arc::new(Recorder {
        events: Mutex::default(),
        cancel_when_ready: cancels_when_ready.then(|| cancel.clone()),
    });
    let prompter = Arc::new(DenyAll { reason: String::new() });
    let cx = TurnContext { sink: recorder.clone(), prompter, cancel };
    Bench { dir, registry, recorder, cx }
}

fn call(id: &str, name: &str, input: &Value) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), input: input.to_string(), iteration: 1 }
}

impl Bench {
    async fn batch(&mut self, calls: Vec<ToolCall>) -> Vec<ToolOutcome> {
        let running = self.registry.execute_batch(calls, &self.cx);
        tokio::time::timeout(HANG, running).await.expect("the batch hangs")
    }

    async fn run(&mut self, name: &str, input: Value) -> ToolOutcome {
        self.batch(vec![call("t1", name, &input)]).await.remove(0)
    }

    async fn bash(&mut self, command: &str) -> ToolOutcome {
        self.run("bash", json!({ "command": command })).await
    }

    fn file(&self, name: &str, content: &str) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn content(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).unwrap()
    }

    /// `start t1`, `end t1`, in the order of the events.
    fn life(&self) -> Vec<String> {
        let events = self.recorder.events.lock().unwrap();
        let name = |event: &TuiEvent| match event {
            TuiEvent::ToolStarted { id, .. } => Some(format!("start {id}")),
            TuiEvent::ToolEnded { id, .. } => Some(format!("end {id}")),
            _ => None,
        };
        events.iter().filter_map(name).collect()
    }

    fn live(&self) -> String {
        let events = self.recorder.events.lock().unwrap();
        let text = |event: &TuiEvent| match event {
            TuiEvent::ToolOutput { text, .. } => Some(text.clone()),
            _ => None,
        };
        events.iter().filter_map(text).collect()
    }

    /// Waits until the process whose id is in the file is gone.
    async fn gone(&self, pid_file: &str) {
        let pid = self.content(pid_file).trim().to_owned();
        let gone = async {
            while fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(HANG, gone).await.expect("the process lives on");
    }
}

#[tokio::test]
async fn specs_are_sorted_and_carry_no_schema_noise() {
    let specs = bench().registry.specs();
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(
        names,
        ["TodoWrite", "bash", "edit_file", "glob_search", "grep_search", "read_file", "write_file"]
    );
    let text = specs.iter().map(|spec| spec.input_schema.to_string()).collect::<String>();
    for noise in ["$schema", "\"title\"", "null", "uint", "$ref", "$defs", "\"default\""] {
        assert!(!text.contains(noise), "{noise} in {text}");
    }
    insta::assert_snapshot!(specs[5].input_schema, @r#"{"type":"object","properties":{"path":{"type":"string","description":"The file, relative to the workspace or absolute inside it."},"offset":{"type":"integer","description":"First line to read, counted from 1."},"limit":{"type":"integer","description":"How many lines to read; 2000 if left out."}},"required":["path"]}"#);
    let grep = &specs[4].input_schema["properties"];
    let fields: Vec<&String> = grep.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "pattern",
            "path",
            "glob",
            "output_mode",
            "-B",
            "-A",
            "-C",
            "-n",
            "-i",
            "type",
            "head_limit",
            "offset",
            "multiline"
        ]
    );
    assert_eq!(grep["output_mode"]["enum"], json!(["files_with_matches", "content", "count"]));
}

/// A read that ends only when two of it run at the same time.
struct Meet;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

static MEETING: std::sync::LazyLock<tokio::sync::Barrier> =
    std::sync::LazyLock::new(|| tokio::sync::Barrier::new(2));

impl Tool for Meet {
    type Input = Nothing;
    const NAME: &'static str = "meet";
    const DESCRIPTION: &'static str = "";
    const LEVEL: PermissionLevel = PermissionLevel::ReadOnly;

    fn grant(_input: &Nothing) -> Grant {
        Grant { key: String::new(), words: String::new() }
    }

    async fn run(_scope: Arc<Scope>, _input: Nothing, _call: CallContext) -> ToolOutcome {
        MEETING.wait().await;
        ToolOutcome::ok("met")
    }
}

struct Panics;

impl Tool for Panics {
    type Input = Nothing;
    const NAME: &'static str = "panics";
    const DESCRIPTION: &'static str = "";
    const LEVEL: PermissionLevel = PermissionLevel::WorkspaceWrite;

    fn grant(_input: &Nothing) -> Grant {
        Grant { key: String::new(), words: String::new() }
    }

    async fn run(_scope: Arc<Scope>, _input: Nothing, call: CallContext) -> ToolOutcome {
        crate::tools::row::blocking(&call, || panic!("on purpose")).await
    }
}

#[tokio::test]
async fn reads_beside_each_other_run_in_parallel_and_the_rest_in_order() {
    let mut bench = bench();
    bench.registry.rows.push(row::<Meet>());
    let outcomes = bench
        .batch(vec![
            call("w", "write_file", &json!({"path": "a", "content": "1"})),
            call("m1", "meet", &json!({})),
            call("m2", "meet", &json!({})),
            call("e", "edit_file", &json!({"path": "a", "old_string": "1", "new_string": "2"})),
            call("b", "bash", &json!({"command": "cat a"})),
        ])
        .await;
    let texts: Vec<&str> = outcomes.iter().map(|outcome| outcome.output.as_str()).collect();
    assert_eq!(texts, ["Created a: 1 lines, 1 bytes.", "met", "met", "Edited a in 1 place.", "2"]);
    let life = bench.life();
    assert_eq!(life[..4], ["start w", "end w", "start m1", "start m2"]);
    assert_eq!(life[6..], ["start e", "end e", "start b", "end b"]);
    // Start precedes end for every id, also where they overlap.
    for id in ["w", "m1", "m2", "e", "b"] {
        let at = |what: &str| life.iter().position(|event| *event == format!("{what} {id}"));
        assert!(at("start").unwrap() < at("end").unwrap());
    }
}

#[tokio::test]
async fn a_panicking_tool_is_an_error_and_the_next_call_runs() {
    let mut bench = bench();
    bench.registry.rows.push(row::<Panics>());
    let calls =
        vec![call("p", "panics", &json!({})), call("b", "bash", &json!({"command": "echo on"}))];
    let outcomes = bench.batch(calls).await;
    assert!(outcomes[0].is_error && outcomes[0].output.contains("panics failed inside"));
    assert_eq!(outcomes[1].output, "on\n");
    assert_eq!(bench.life(), ["start p", "end p", "start b", "end b"]);
}

#[tokio::test]
async fn after_a_cancel_every_call_has_a_result_and_none_is_started_any_more() {
    let mut bench = bench_with(true);
    let outcomes = bench
        .batch(vec![
            call("b", "bash", &json!({"command": "echo ready; sleep 1000"})),
            call("r", "read_file", &json!({"path": "x"})),
            call("w", "write_file", &json!({"path": "x", "content": "y"})),
        ])
        .await;
    assert!(outcomes[0].output.starts_with("ready\n[interrupted by the person after"));
    assert!(matches!(outcomes[0].facts, Some(ToolFacts::Command { cancelled: true, .. })));
    for outcome in &outcomes[1..] {
        assert_eq!((outcome.output.as_str(), outcome.is_error), (NOT_RUN, true));
    }
    assert_eq!(bench.life(), ["start b", "end b"]);
    assert!(!bench.dir.path().join("x").exists());
}

#[tokio::test]
async fn unknown_tools_and_unreadable_input_say_what_to_do() {
    let mut bench = bench();
    let outcome = bench.run("fly", json!({})).await;
    assert!(outcome.output.contains("no tool named fly; the tools are bash, edit_file"));
    let outcome = bench.run("Read", json!({})).await;
    assert_eq!(outcome.output, "there is no tool named Read; call read_file instead");
    let outcome = bench.run("read_file", json!({"offset": 3})).await;
    assert!(outcome.output.contains("invalid input for read_file: missing field `path`"));
    assert!(outcome.is_error);
}

#[tokio::test]
async fn spellings_of_claude_code_and_numbers_in_quotes_are_understood() {
    let mut bench = bench();
    bench.file("a", "one\ntwo\nthree\n");
    let outcome =
        bench.run("read_file", json!({"file_path": "a", "offset": "2", "limit": 1})).await;
    assert_eq!(outcome.output, "     2\ttwo\n[lines 2-2 of 3; read on with offset 3]\n");
}

#[tokio::test]
async fn no_secret_leaves_in_results_facts_live_output_events_or_previews() {
    let mut bench = bench();
    bench.file("a", &format!("old {SECRET}\n"));
    let shaped = "sk-ant-api03-abcdefgh";
    let edit = json!({"path": "a", "old_string": "old", "new_string": format!("new {shaped}")});
    let edit = call("e", "edit_file", &edit);
    let preview = bench.registry.preview(&edit).unwrap();
    // The secret is printed in two writes, the cut in the middle of it.
    let printed = format!("printf planted-mar; sleep 0.3; echo ker-value-1; echo {shaped}");
    let bash = call("b", "bash", &json!({ "command": printed }));
    let grant = bench.registry.requirement(&bash).grant.words;
    let calls = vec![
        call("r", "read_file", &json!({"path": "a"})),
        call("g", "grep_search", &json!({"pattern": "old", "output_mode": "content"})),
        edit,
        bash,
        call("t", "TodoWrite", &json!({"todos": [{"content": SECRET, "status": "pending"}]})),
        call("x", SECRET, &json!({})),
    ];
    let outcomes = bench.batch(calls).await;
    let events: Vec<String> = bench
        .recorder
        .events
        .lock()
        .unwrap()
        .iter()
        // The name and the id are the model's; there is nothing of ours in them.
        .filter(|event| !matches!(event, TuiEvent::ToolStarted { id, .. } if id == "x"))
        .map(|event| format!("{event:?}"))
        .collect();
    let everything = format!("{outcomes:?}{events:?}{preview}{grant}");
    for secret in [SECRET, shaped, "ker-value-1\\n"] {
        assert!(!everything.contains(secret), "{secret} in {everything}");
    }
    assert_eq!(outcomes[3].output, "[redacted]\n[redacted]\n");
    assert_eq!(bench.live(), "[redacted]\n[redacted]\n");
    assert!(bench.content("a").contains(SECRET), "files themselves are not touched");
}

#[test]
fn each_tool_needs_its_level_and_grants_its_scope() {
    use PermissionLevel as L;
    let bench = bench();
    for (name, input, level, grant) in [
        ("bash", json!({"command": "ls"}), L::DangerFullAccess, "`ls`"),
        ("read_file", json!({"path": "a"}), L::ReadOnly, "reading files inside the workspace"),
        ("glob_search", json!({"pattern": "*"}), L::ReadOnly, "finding files inside the workspace"),
        (
            "grep_search",
            json!({"pattern": "a"}),
            L::ReadOnly,
            "searching files inside the workspace",
        ),
        (
            "write_file",
            json!({"path": "a", "content": ""}),
            L::WorkspaceWrite,
            "edits inside the workspace",
        ),
        (
            "edit_file",
            json!({"path": "a", "old_string": "a", "new_string": "b"}),
            L::WorkspaceWrite,
            "edits inside the workspace",
        ),
        ("TodoWrite", json!({"todos": []}), L::None, "updating the todo list"),
        ("fly", json!({}), L::DangerFullAccess, "the unknown tool fly"),
    ] {
        let needs = bench.registry.requirement(&call("t", name, &input));
        assert_eq!(
            (needs.level, needs.grant.words.as_str(), needs.always_ask),
            (level, grant, None)
        );
    }
    let key = |command: &str| {
        bench.registry.requirement(&call("t", "bash", &json!({ "command": command }))).grant.key
    };
    assert_ne!(key("cargo test"), key("cargo test; rm x"));
}

#[test]
fn changing_protected_files_and_destroying_beyond_the_workspace_always_asks() {
    let bench = bench();
    fs::create_dir_all(bench.dir.path().join(".git/hooks")).unwrap();
    symlink(".git/hooks", bench.dir.path().join("innocent")).unwrap();
    for (name, input, expected) in [
        (
            "write_file",
            json!({"path": ".git/hooks/pre-commit", "content": ""}),
            ".git/hooks/pre-commit is protected: git runs",
        ),
        (
            "write_file",
            json!({"path": "innocent/pre-commit", "content": ""}),
            ".git/hooks/pre-commit is protected",
        ),
        (
            "edit_file",
            json!({"file_path": "./x/../.CLAW/settings.json", "old_string": "a", "new_string": "b"}),
            "is protected: it holds this program's settings",
        ),
        ("bash", json!({"command": "rm -rf ~"}), "rm goes through ~"),
    ] {
        let needs = bench.registry.requirement(&call("t", name, &input));
        let why = needs.always_ask.unwrap_or_default();
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn only_the_named_tools_are_offered() {
    let dir = tempfile::tempdir().unwrap();
    let registry = || ToolRegistry::new(dir.path(), Redactor::default()).unwrap();
    let specs = registry().only(["Read", "bash"]).unwrap().specs();
    assert_eq!(
        specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(),
        ["bash", "read_file"]
    );
    let error = registry().only(["fly"]).err().unwrap().to_string();
    assert!(error.contains("no tool named fly"), "{error}");
    let error = ToolRegistry::new(Path::new("/nowhere/at/all"), Redactor::default()).err().unwrap();
    assert!(error.to_string().contains("/nowhere/at/all cannot be used"), "{error}");
}
