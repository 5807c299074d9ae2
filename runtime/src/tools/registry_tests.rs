//! The registry as the turn loop sees it: real files, real processes, recorded events.

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

// The batch

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
    let outcome = bench.run("read_file", json!({"offset": 3})).await;
    assert!(outcome.output.contains("invalid input for read_file: missing field `path`"));
    assert!(outcome.is_error);
}

#[tokio::test]
async fn spellings_of_claude_code_and_numbers_in_quotes_are_understood() {
    let mut bench = bench();
    bench.file("a", "one\ntwo\nthree\n");
    let outcome = bench.run("Read", json!({"file_path": "a", "offset": "2", "limit": 1})).await;
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

// bash

#[tokio::test]
async fn output_comes_in_the_order_it_was_written_with_exit_code_and_facts() {
    let mut bench = bench();
    let outcome = bench.bash("echo a; echo b >&2; echo c; pwd; exit 3").await;
    let pwd = bench.dir.path().canonicalize().unwrap();
    assert_eq!(outcome.output, format!("a\nb\nc\n{}\n[exit code 3]", pwd.display()));
    assert!(outcome.is_error && outcome.elapsed > Duration::ZERO);
    assert!(matches!(outcome.facts, Some(ToolFacts::Command { exit_code: Some(3), .. })));
    let outcome = bench.bash("true").await;
    assert_eq!((outcome.output.as_str(), outcome.is_error), ("(succeeded without output)", false));
    let outcome = bench.bash("kill -9 $$").await;
    assert_eq!(outcome.output, "[ended by signal 9]");
    assert!(matches!(outcome.facts, Some(ToolFacts::Command { signal: Some(9), .. })));
}

#[tokio::test]
async fn a_command_has_neither_input_nor_the_terminal_of_the_person() {
    let outcome = bench().bash("cat; (: < /dev/tty) 2>/dev/null || echo no terminal").await;
    assert_eq!(outcome.output, "no terminal\n");
}

#[tokio::test]
async fn a_command_over_its_time_is_ended_and_its_output_kept() {
    let mut bench = bench();
    let input = json!({"command": "echo $$ > pid; echo begun; sleep 1000", "timeout": 300});
    let outcome = bench.run("bash", input).await;
    assert!(outcome.output.starts_with("begun\n[timed out after 0.3 s"), "{}", outcome.output);
    assert!(outcome.is_error);
    assert!(matches!(outcome.facts, Some(ToolFacts::Command { timed_out: true, .. })));
    bench.gone("pid").await;
}

#[tokio::test]
async fn a_cancel_ends_a_command_that_ignores_the_polite_signal() {
    let mut bench = bench_with(true);
    bench
        .bash("trap '' TERM INT HUP; echo $$ > pid; echo ready; while :; do sleep 0.05; done")
        .await;
    bench.gone("pid").await;
}

#[tokio::test]
async fn a_cancel_ends_descendants_that_left_the_group_and_the_family() {
    let mut bench = bench_with(true);
    bench
        .bash(
            "setsid bash -c 'echo $$ > child; exec sleep 1000' &
             (setsid bash -c 'echo $$ > orphan; exec sleep 1000' &)
             while ! [ -s child ] || ! [ -s orphan ]; do sleep 0.02; done
             echo ready; wait; sleep 1000",
        )
        .await;
    bench.gone("child").await;
    bench.gone("orphan").await;
}

#[tokio::test]
async fn a_turn_that_is_dropped_takes_its_command_with_it() {
    let mut bench = bench_with(true);
    {
        let command = "echo $$ > pid; echo ready; sleep 1000";
        // A token of its own: the cancel only tells that the command is up.
        let cx = TurnContext { cancel: CancellationToken::new(), ..bench.cx.clone() };
        let batch = bench
            .registry
            .execute_batch(vec![call("b", "bash", &json!({ "command": command }))], &cx);
        let up = async {
            tokio::select! {
                _ = batch => panic!("it ended by itself"),
                () = bench.cx.cancel.cancelled() => {}
            }
        };
        tokio::time::timeout(HANG, up).await.expect("the command does not start");
    }
    bench.gone("pid").await;
}

#[tokio::test]
async fn a_child_that_keeps_the_pipe_open_does_not_hold_the_call_and_lives_on() {
    let mut bench = bench();
    let command = "(sleep 0.5; echo late; touch alive; sleep 1000) & echo $! > pid; echo done";
    let outcome = bench.bash(command).await;
    assert!(outcome.output.starts_with("done\n[a process that the command started is still"));
    assert!(!outcome.is_error);
    // Its next write meets an open pipe.
    let alive = async {
        while !bench.dir.path().join("alive").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANG, alive).await.expect("it died of its output");
    bench.bash("kill $(cat pid); pkill -P $(cat pid)").await;
}

#[tokio::test]
async fn live_output_comes_while_the_command_runs_and_equals_the_result() {
    let mut bench = bench_with(true);
    // It would run for ever: that it is cancelled proves that its output came before its end.
    let outcome = bench.bash("printf 'no line end yet, ready '; sleep 1000").await;
    assert!(matches!(outcome.facts, Some(ToolFacts::Command { cancelled: true, .. })));
    assert!(bench.live().starts_with("no line end yet, "));
}

#[tokio::test]
async fn a_flood_of_output_is_bounded_in_the_result_and_live() {
    let mut bench = bench();
    let outcome =
        bench.bash("head -c 20000000 /dev/zero | tr '\\0' 'y' | fold -w 79; echo end").await;
    assert!(outcome.output.len() < 31_000 && outcome.output.ends_with("end\n"));
    assert!(outcome.output.contains("bytes of output left out here]"));
    assert!(bench.live().len() < 2_000_000);
    assert!(
        matches!(outcome.facts, Some(ToolFacts::Command { omitted_bytes, .. }) if omitted_bytes > 19_000_000)
    );
}

#[tokio::test]
async fn background_output_is_readable_and_the_command_ends_with_the_registry() {
    let mut bench = bench();
    let started = |outcome: &ToolOutcome| {
        let path = outcome.output.split("Output goes to ").nth(1).unwrap();
        path.split(';').next().unwrap().to_owned()
    };
    let short = json!({"command": "echo out; echo err >&2; exit 4", "run_in_background": true});
    let outcome = bench.run("bash", short).await;
    assert!(!outcome.is_error, "{}", outcome.output);
    let path = started(&outcome);
    let over = async {
        loop {
            let read = bench.run("read_file", json!({ "path": path })).await.output;
            if read.contains("the command ended") {
                break read;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let read = tokio::time::timeout(HANG, over).await.expect("its end is not told");
    assert!(read.contains("out\n") && read.contains("err\n") && read.contains("exit status: 4"));
    let long = json!({"command": "echo $$ > pid; sleep 1000", "run_in_background": true});
    let path = started(&bench.run("bash", long).await);
    while bench.dir.path().join("pid").metadata().map_or(0, |found| found.len()) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let Bench { dir, registry, recorder, cx } = bench;
    drop(registry);
    assert!(!Path::new(&path).exists());
    let registry = ToolRegistry::new(dir.path(), Redactor::default()).unwrap();
    Bench { dir, registry, recorder, cx }.gone("pid").await;
}

// Files

#[tokio::test]
async fn reading_numbers_lines_and_says_how_to_read_on() {
    let mut bench = bench();
    let lines = (1..=2_500).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
    bench.file("long", &lines);
    bench.file("wide", &format!("{}\nend", "x".repeat(2_500)));
    bench.file("empty", "");
    let outcome = bench.run("read_file", json!({"path": "long"})).await;
    assert!(outcome.output.starts_with("     1\tline 1\n     2\tline 2\n"));
    assert!(outcome.output.ends_with("[lines 1-2000 of 2500; read on with offset 2001]\n"));
    assert_eq!(
        outcome.facts,
        Some(ToolFacts::Read {
            path: "long".into(),
            first_line: 1,
            lines: 2_000,
            total_lines: 2_500
        })
    );
    let outcome = bench.run("read_file", json!({"path": "long", "offset": 2_500})).await;
    assert_eq!(outcome.output, "  2500\tline 2500\n");
    let outcome = bench.run("read_file", json!({"path": "long", "offset": 2_501})).await;
    assert!(outcome.is_error && outcome.output.contains("has 2500 lines"));
    let outcome = bench.run("read_file", json!({"path": "wide"})).await;
    assert!(outcome.output.contains(" [500 more characters of this line]\n     2\tend\n"));
    let outcome = bench.run("read_file", json!({"path": "empty"})).await;
    assert_eq!((outcome.output.as_str(), outcome.is_error), ("(the file is empty)", false));
}

#[tokio::test]
async fn files_outside_the_workspace_are_neither_read_nor_written() {
    let mut bench = bench();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "s").unwrap();
    symlink(outside.path(), bench.dir.path().join("way")).unwrap();
    for path in ["way/secret", "way/new", "../x", "/etc/claw-test"] {
        for (tool, input) in [
            ("read_file", json!({ "path": path })),
            ("write_file", json!({"path": path, "content": "x"})),
            ("edit_file", json!({"path": path, "old_string": "s", "new_string": "x"})),
            ("glob_search", json!({"pattern": "*", "path": path})),
            ("grep_search", json!({"pattern": "s", "path": path})),
        ] {
            let outcome = bench.run(tool, input).await;
            assert!(outcome.is_error && outcome.output.contains("outside the workspace"), "{path}");
        }
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn writing_creates_parents_replaces_whole_files_and_gives_the_diff() {
    let mut bench = bench();
    let outcome = bench.run("write_file", json!({"path": "a/b/c.txt", "content": "x\ny\n"})).await;
    assert_eq!(
        outcome.facts,
        Some(ToolFacts::Diff {
            path: "a/b/c.txt".into(),
            diff: "@@ -0,0 +1,2 @@\n+x\n+y\n".into(),
            added: 2,
            removed: 0,
            created: true,
        })
    );
    let outcome = bench.run("write_file", json!({"path": "a/b/c.txt", "content": "x\nz\n"})).await;
    assert!(outcome.output.starts_with("Replaced a/b/c.txt"));
    assert!(matches!(
        outcome.facts,
        Some(ToolFacts::Diff { added: 1, removed: 1, created: false, .. })
    ));
    assert_eq!(bench.content("a/b/c.txt"), "x\nz\n");
}

#[tokio::test]
async fn an_edit_is_exact_or_says_why_not_and_changes_nothing() {
    let mut bench = bench();
    let original = "one two\n  two\nthree\n";
    bench.file("a", original);
    bench.file("unread", original);
    bench.run("read_file", json!({"path": "a"})).await;
    for (path, old, new, all, expected) in [
        ("a", "four", "x", false, "not found in a; read the file again"),
        ("a", "     1\tone two", "x", false, "line numbers that read_file shows"),
        ("a", "one two\ntwo", "x", false, "would match if white space were ignored"),
        ("a", "two", "x", false, "occurs 2 times in a; take more lines around it"),
        ("a", "one", "one", false, "equal; there is nothing to change"),
        ("a", "", "x", false, "old_string is empty"),
        ("unread", "two", "x", true, "was not read yet; read it first"),
        ("missing", "two", "x", true, "does not exist"),
    ] {
        let input = json!({"path": path, "old_string": old, "new_string": new, "replace_all": all});
        let outcome = bench.run("edit_file", input).await;
        assert!(outcome.is_error && outcome.output.contains(expected), "{}", outcome.output);
    }
    assert_eq!(bench.content("a"), original);
    let all = json!({"path": "a", "old_string": "two", "new_string": "2", "replace_all": true});
    assert_eq!(bench.run("edit_file", all).await.output, "Edited a in 2 places.");
    assert_eq!(bench.content("a"), "one 2\n  2\nthree\n");
    // Unread, but there is no doubt which place is meant.
    let unique = json!({"path": "unread", "old_string": "three", "new_string": "3"});
    assert!(!bench.run("edit_file", unique).await.is_error);
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_overwritten() {
    let mut bench = bench();
    bench.file("a", "mine\n");
    bench.run("read_file", json!({"path": "a"})).await;
    bench.file("a", "mine\nand theirs\n");
    let edit = json!({"path": "a", "old_string": "mine", "new_string": "x"});
    let write = json!({"path": "a", "content": "x"});
    for (tool, input) in [("edit_file", edit.clone()), ("write_file", write)] {
        let outcome = bench.run(tool, input).await;
        assert!(outcome.is_error && outcome.output.contains("changed since it was read"));
    }
    assert_eq!(bench.content("a"), "mine\nand theirs\n");
    bench.run("read_file", json!({"path": "a"})).await;
    assert!(!bench.run("edit_file", edit).await.is_error);
    // Own changes do not count as foreign.
    let again = json!({"path": "a", "old_string": "theirs", "new_string": "ours"});
    assert!(!bench.run("edit_file", again).await.is_error);
    assert_eq!(bench.content("a"), "x\nand ours\n");
}

#[tokio::test]
async fn crlf_files_keep_crlf() {
    let mut bench = bench();
    bench.file("a", "one\r\ntwo\r\nthree\r\n");
    let edit = json!({"path": "a", "old_string": "one\ntwo", "new_string": "1\n1.5\n2"});
    assert!(!bench.run("edit_file", edit).await.is_error);
    assert_eq!(bench.content("a"), "1\r\n1.5\r\n2\r\nthree\r\n");
    bench.run("write_file", json!({"path": "a", "content": "new\nlines\n"})).await;
    assert_eq!(bench.content("a"), "new\r\nlines\r\n");
}

#[tokio::test]
async fn a_preview_shows_the_diff_and_touches_nothing() {
    let bench = bench();
    bench.file("a", "one\n");
    let edit =
        call("e", "edit_file", &json!({"path": "a", "old_string": "one", "new_string": "1"}));
    assert_eq!(bench.registry.preview(&edit).unwrap(), "@@ -1 +1 @@\n-one\n+1\n");
    let write = call("w", "write_file", &json!({"path": "d/new", "content": "x\n"}));
    assert_eq!(bench.registry.preview(&write).unwrap(), "@@ -0,0 +1 @@\n+x\n");
    assert_eq!(bench.registry.preview(&call("b", "bash", &json!({"command": "ls"}))), None);
    assert_eq!(bench.content("a"), "one\n");
    assert!(!bench.dir.path().join("d").exists());
}

// Searches

fn searchable() -> Bench {
    let bench = bench();
    bench.file(".gitignore", "ignored/\n");
    bench.file("src/a.rs", "fn one() {}\nfn two() {}\n// end\n");
    bench.file("src/b.rs", "one\r\n");
    bench.file("notes.md", "start {\n  one\n}\n");
    bench.file("ignored/c.rs", "one\n");
    bench.file(".hidden/d.rs", "one\n");
    bench.file(".git/e.rs", "one\n");
    fs::write(bench.dir.path().join("binary.rs"), b"one\0\0").unwrap();
    bench
}

#[tokio::test]
async fn glob_finds_newest_first_without_ignored_and_hidden_files() {
    let mut bench = searchable();
    let old = fs::File::open(bench.dir.path().join("src/b.rs")).unwrap();
    old.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let older = fs::File::open(bench.dir.path().join("binary.rs")).unwrap();
    older.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(9)).unwrap();
    for (input, expected) in [
        (json!({"pattern": "*.rs"}), "src/a.rs\nbinary.rs\nsrc/b.rs\n"),
        (json!({"pattern": "src/*.rs"}), "src/a.rs\nsrc/b.rs\n"),
        (json!({"pattern": "a.rs", "path": "src"}), "src/a.rs\n"),
        (json!({"pattern": ".hidden/*"}), ".hidden/d.rs\n"),
        (json!({"pattern": "*", "path": ".hidden"}), ".hidden/d.rs\n"),
        (
            json!({"pattern": "*.py"}),
            "No files match (hidden and ignored files were not looked at).\n",
        ),
    ] {
        let outcome = bench.run("glob_search", input).await;
        assert_eq!((outcome.output.as_str(), outcome.is_error), (expected, false));
    }
    let outcome = bench.run("glob_search", json!({"pattern": "src/[a"})).await;
    assert!(outcome.is_error && outcome.output.contains("character 5"), "{}", outcome.output);
    for n in 0..130 {
        bench.file(&format!("many/{n}.txt"), "");
    }
    let outcome = bench.run("glob_search", json!({"pattern": "many/*"})).await;
    assert_eq!(outcome.output.lines().count(), 101);
    assert!(
        outcome
            .output
            .ends_with("[truncated: the 100 newest of 130 files; use a narrower pattern]\n")
    );
    assert_eq!(
        outcome.facts,
        Some(ToolFacts::Matches { matches: 130, files: 130, truncated: true })
    );
}

#[tokio::test]
async fn grep_shows_files_lines_or_counts_and_no_match_is_success() {
    let mut bench = searchable();
    let all = json!({"pattern": "one"});
    for (input, expected) in [
        (all, "notes.md\nsrc/a.rs\nsrc/b.rs\n"),
        (
            json!({"pattern": "ONE|two", "-i": true, "output_mode": "content", "type": "rust"}),
            "src/a.rs:1:fn one() {}\nsrc/a.rs:2:fn two() {}\nsrc/b.rs:1:one\n",
        ),
        (json!({"pattern": "fn", "output_mode": "count", "glob": "*.rs"}), "src/a.rs:2\n"),
        (
            json!({"pattern": "two", "output_mode": "content", "-C": 1, "path": "src/a.rs"}),
            "src/a.rs-1-fn one() {}\nsrc/a.rs:2:fn two() {}\nsrc/a.rs-3-// end\n",
        ),
        (
            json!({"pattern": "one$", "output_mode": "content", "-n": false, "path": "src"}),
            "src/b.rs:one\n",
        ),
        (
            json!({"pattern": "\\{.*?\\}", "multiline": true, "output_mode": "content", "glob": "*.md"}),
            "notes.md:1:start {\nnotes.md:2:  one\nnotes.md:3:}\n",
        ),
        (
            json!({"pattern": "one", "head_limit": 1}),
            "notes.md\n[truncated after 1 entries; there are more. Narrow the search, or read on with offset]\n",
        ),
        (json!({"pattern": "one", "offset": 2, "head_limit": 1}), "src/b.rs\n"),
        (json!({"pattern": "nowhere"}), "No matches found.\n"),
    ] {
        let outcome = bench.run("grep_search", input.clone()).await;
        assert_eq!((outcome.output.as_str(), outcome.is_error), (expected, false), "{input}");
    }
    for (input, expected) in [
        (json!({"pattern": "a(b"}), "    a(b\n     ^\nerror: unclosed group"),
        (json!({"pattern": "a\\nb"}), "set multiline to match across lines"),
        (json!({"pattern": "a", "type": "cobolt"}), "file type cobolt is not known"),
        (json!({"pattern": "a", "path": "nope"}), "nope does not exist"),
    ] {
        let outcome = bench.run("grep_search", input.clone()).await;
        assert!(outcome.is_error && outcome.output.contains(expected), "{}", outcome.output);
    }
}

#[tokio::test]
async fn grep_stops_at_250_entries_unless_told_otherwise() {
    let mut bench = bench();
    bench.file("a", &"hit\n".repeat(300));
    let input = json!({"pattern": "hit", "output_mode": "content"});
    let outcome = bench.run("grep_search", input).await;
    assert_eq!(outcome.output.lines().count(), 251);
    assert!(matches!(
        outcome.facts,
        Some(ToolFacts::Matches { matches: 250, files: 1, truncated: true })
    ));
    let all = json!({"pattern": "hit", "output_mode": "content", "head_limit": 0});
    let outcome = bench.run("grep_search", all).await;
    assert_eq!(outcome.output.lines().count(), 300);
    assert!(matches!(
        outcome.facts,
        Some(ToolFacts::Matches { matches: 300, files: 1, truncated: false })
    ));
}

// Requirements

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
