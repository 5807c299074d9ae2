use std::fs::{self, OpenOptions};
use std::io::Write as _;

use serde_json::json;
use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
use crate::transcript::Record;

/// Only a follower that hangs gets there.
const PATIENCE: Duration = Duration::from_secs(20);

struct Scene {
    _place: TempDir,
    folder: PathBuf,
    agents: AgentFollower,
}

impl Scene {
    fn new() -> Self {
        Self::with(Duration::from_hours(1), Duration::from_hours(1))
    }

    fn with(slow_poll: Duration, subagent_age: Duration) -> Self {
        let place = tempfile::tempdir().unwrap();
        let transcript = place.path().join("s1.jsonl");
        let timings = Timings { slow_poll, subagent_age, ..Timings::default() };
        let folder = place.path().join("s1/subagents");
        Self { agents: AgentFollower::new(&transcript, &timings), folder, _place: place }
    }

    fn call(&mut self, id: &str, input: &serde_json::Value) -> Vec<Fact> {
        self.tool("Agent", id, input)
    }

    fn tool(&mut self, name: &str, id: &str, input: &serde_json::Value) -> Vec<Fact> {
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
        self.pass(&json!({"type": "assistant", "message": {"id": "m", "content": [block]}}))
    }

    fn result(&mut self, id: &str, is_error: bool, structured: &serde_json::Value) -> Vec<Fact> {
        let block = json!({"type": "tool_result", "tool_use_id": id, "is_error": is_error,
            "content": "said"});
        self.pass(&json!({"type": "user", "message": {"content": [block]},
            "toolUseResult": structured}))
    }

    fn notified(&mut self, agent: &str, inside: &str) -> Vec<Fact> {
        let text =
            format!("<task-notification><task-id>{agent}</task-id>{inside}</task-notification>");
        self.pass(&json!({"type": "user", "message": {"content": text},
            "origin": {"kind": "task-notification"}}))
    }

    /// The facts about sub-agents that came of one record of the session.
    fn pass(&mut self, value: &serde_json::Value) -> Vec<Fact> {
        let record = Record::parse(value.to_string().as_bytes()).unwrap();
        let facts: Vec<Fact> =
            record.facts.into_iter().flat_map(|fact| self.agents.pass(fact)).collect();
        facts
            .into_iter()
            .filter(|fact| matches!(fact, Fact::AgentSpawned { .. } | Fact::AgentDone { .. }))
            .collect()
    }

    fn write(&self, agent: &str, block: &serde_json::Value) {
        fs::create_dir_all(&self.folder).unwrap();
        let path = self.folder.join(format!("agent-{agent}.jsonl"));
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        let id = uuid::Uuid::new_v4().to_string();
        let record = json!({"type": "assistant", "uuid": id, "isSidechain": true,
            "message": {"id": "m", "content": [block]}});
        writeln!(file, "{record}").unwrap();
    }

    fn meta(&self, agent: &str, text: &str) {
        fs::create_dir_all(&self.folder).unwrap();
        fs::write(self.folder.join(format!("agent-{agent}.meta.json")), text).unwrap();
    }

    async fn next(&mut self) -> Fact {
        timeout(PATIENCE, self.agents.next()).await.expect("the follower tells it")
    }
}

fn spawned(agent: &str, call: &str, kind: Option<&str>, background: bool) -> Fact {
    Fact::AgentSpawned {
        agent: agent.into(),
        tool_use_id: Some(call.into()),
        kind: kind.map(str::to_owned),
        background,
    }
}

fn progress(agent: &str, call: &str, text: &str) -> Fact {
    Fact::AgentProgress { agent: agent.into(), tool_use_id: Some(call.into()), text: text.into() }
}

fn done(agent: &str, call: Option<&str>, status: AgentEnd, summary: &str) -> Fact {
    Fact::AgentDone {
        agent: agent.into(),
        tool_use_id: call.map(str::to_owned),
        status,
        summary: summary.into(),
    }
}

fn text(words: &str) -> serde_json::Value {
    json!({"type": "text", "text": words})
}

#[test]
fn background_by_its_receipt_is_spawned_once_and_the_receipt_is_no_end() {
    let mut scene = Scene::new();
    assert_eq!(scene.call("t1", &json!({"subagent_type": "reviewer"})), []);
    assert_eq!(scene.agents.pending(), 1);
    let receipt = json!({"isAsync": true, "status": "async_launched", "agentId": "a1"});
    assert_eq!(scene.result("t1", false, &receipt), [spawned("a1", "t1", Some("reviewer"), true)]);
    assert_eq!(scene.agents.pending(), 1);
    let end = "<status>completed</status><summary>it is done</summary>";
    assert_eq!(scene.notified("a1", end), [done("a1", None, AgentEnd::Completed, "it is done")]);
    assert_eq!(scene.agents.pending(), 0);
}

#[test]
fn background_by_its_input_is_spawned_once() {
    let mut scene = Scene::new();
    let input = json!({"run_in_background": true, "subagent_type": "x"});
    assert_eq!(scene.call("t1", &input), [spawned("t1", "t1", Some("x"), true)]);
    assert_eq!(scene.result("t1", false, &json!({"isAsync": true, "agentId": "a1"})), []);
    assert_eq!(scene.agents.pending(), 1);
    // Known by its call or by its id.
    let end = "<tool-use-id>t1</tool-use-id><status>killed</status>";
    assert_eq!(scene.notified("a1", end), [done("a1", Some("t1"), AgentEnd::Killed, "")]);
    assert_eq!(scene.agents.pending(), 0);
}

#[test]
fn one_that_is_waited_for_ends_with_its_result() {
    let mut scene = Scene::new();
    scene.tool("Task", "t1", &json!({}));
    let receipt = json!({"status": "completed", "agentId": "a1",
        "content": [{"type": "text", "text": "found it"}]});
    assert_eq!(
        scene.result("t1", false, &receipt),
        [spawned("t1", "t1", None, false), done("a1", Some("t1"), AgentEnd::Completed, "found it"),]
    );
    assert_eq!(scene.agents.pending(), 0);
    // Without a structured receipt, too.
    scene.call("t2", &json!({}));
    assert_eq!(
        scene.result("t2", false, &json!(null)),
        [spawned("t2", "t2", None, false), done("t2", Some("t2"), AgentEnd::Completed, "said"),]
    );
    assert_eq!(scene.agents.pending(), 0);
}

#[test]
fn one_that_was_refused_never_was() {
    let mut scene = Scene::new();
    scene.call("t1", &json!({}));
    assert_eq!(scene.result("t1", true, &json!("User rejected tool use")), []);
    assert_eq!(scene.agents.pending(), 0);
}

#[test]
fn a_monitor_is_armed_by_its_result_and_may_time_out() {
    let mut scene = Scene::new();
    scene.tool("Monitor", "t1", &json!({"command": "tail"}));
    let armed = json!({"taskId": "m1", "timeoutMs": 1000, "persistent": false});
    assert_eq!(scene.result("t1", false, &armed), [spawned("m1", "t1", Some("Monitor"), true)]);
    assert_eq!(scene.agents.pending(), 1);
    assert_eq!(
        scene.notified("m1", "<summary>Monitor timed out</summary>"),
        [done("m1", None, AgentEnd::TimedOut, "Monitor timed out")]
    );
    assert_eq!(scene.agents.pending(), 0);
}

#[test]
fn the_end_of_an_unknown_one_is_passed_on() {
    let mut scene = Scene::new();
    let end = "<status>failed</status><summary>s</summary>";
    assert_eq!(scene.notified("a9", end), [done("a9", None, AgentEnd::Failed, "s")]);
    assert_eq!(scene.agents.pending(), 0);
}

#[test]
fn a_real_session_has_one_and_then_none() {
    let mut scene = Scene::new();
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/fixtures/claude/transcripts/2.1.332/subagent-async.jsonl"
    );
    let mut counts = Vec::new();
    let mut told = Vec::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        told.extend(scene.pass(&serde_json::from_str(line).unwrap()));
        counts.push(scene.agents.pending());
    }
    counts.dedup();
    assert_eq!(counts, [0, 1, 0]);
    let (agent, call) = ("a86626a257a458d63", "toolu_mock_e3a9a24fc17d");
    assert_eq!(
        told,
        [
            spawned(agent, call, Some("general-purpose"), true),
            done(agent, Some(call), AgentEnd::Completed, "Agent \"Small job\" finished"),
        ]
    );
}

#[tokio::test]
async fn progress_is_told_with_words_when_the_transcript_grows() {
    let mut scene = Scene::new();
    scene.call("t1", &json!({"run_in_background": true}));
    scene.result("t1", false, &json!({"isAsync": true, "agentId": "a1"}));
    // Nothing to say yet.
    scene.write("a1", &json!({"type": "thinking", "thinking": "hm", "signature": "s"}));
    scene.write("a1", &text(" I look "));
    assert_eq!(scene.next().await, progress("a1", "t1", "I look"));
    scene.write("a1", &json!({"type": "tool_use", "id": "x", "name": "Bash", "input": {}}));
    assert_eq!(scene.next().await, progress("a1", "t1", "Bash"));
    scene.write("a1", &text(&"é".repeat(900)));
    assert_eq!(scene.next().await, progress("a1", "t1", &"é".repeat(500)));
}

#[tokio::test]
async fn a_call_is_tied_to_its_transcript_by_the_meta_file() {
    let mut scene = Scene::new();
    scene.call("t1", &json!({}));
    scene.meta("bad", "{");
    scene.meta("a7", r#"{"agentType": "explorer", "toolUseId": "t1"}"#);
    scene.write("a7", &text("here"));
    // By its progress it is known to be out.
    assert_eq!(scene.next().await, spawned("a7", "t1", Some("explorer"), false));
    assert_eq!(scene.next().await, progress("a7", "t1", "here"));
    let receipt = json!({"status": "completed", "agentId": "a7", "content": []});
    assert_eq!(
        scene.result("t1", false, &receipt),
        [done("a7", Some("t1"), AgentEnd::Completed, "said")]
    );
}

#[tokio::test]
async fn two_followers_of_the_same_session_take_nothing_from_each_other() {
    let mut scene = Scene::new();
    let transcript = scene.folder.parent().unwrap().with_extension("jsonl");
    let mut other = AgentFollower::new(&transcript, &Timings::default());
    let launched = spawned("a1", "t1", None, true);
    scene.agents.pass(launched.clone());
    other.pass(launched);
    scene.write("a1", &text("one"));
    let expected = progress("a1", "t1", "one");
    assert_eq!(scene.next().await, expected);
    assert_eq!(timeout(PATIENCE, other.next()).await.unwrap(), expected);
}

#[tokio::test]
async fn several_are_told_apart() {
    let mut scene = Scene::new();
    scene.agents.pass(spawned("a1", "t1", None, true));
    scene.agents.pass(spawned("a2", "t2", None, true));
    assert_eq!(scene.agents.pending(), 2);
    scene.write("a2", &text("second"));
    assert_eq!(scene.next().await, progress("a2", "t2", "second"));
    scene.write("a1", &text("first"));
    assert_eq!(scene.next().await, progress("a1", "t1", "first"));
}

#[tokio::test]
async fn one_whose_end_is_never_told_is_lost_at_its_age() {
    let mut scene = Scene::with(Duration::from_hours(1), Duration::from_millis(50));
    scene.agents.pass(spawned("a1", "t1", None, true));
    let Fact::AgentDone { agent, status, summary, .. } = scene.next().await else {
        panic!("not done")
    };
    assert_eq!((agent.as_str(), status), ("a1", AgentEnd::Lost));
    assert!(!summary.is_empty());
    assert_eq!(scene.agents.pending(), 0);
}

#[tokio::test]
async fn an_id_that_is_no_name_of_a_file_is_not_read() {
    let mut scene = Scene::with(Duration::from_hours(1), Duration::from_millis(100));
    fs::create_dir_all(&scene.folder).unwrap();
    scene.agents.pass(spawned("x/../../evil", "t1", None, true));
    fs::create_dir(scene.folder.join("agent-x")).unwrap();
    scene.write("x", &text("no"));
    let record = scene.folder.join("agent-x.jsonl");
    fs::rename(record, scene.folder.parent().unwrap().join("evil.jsonl")).unwrap();
    assert!(matches!(scene.next().await, Fact::AgentDone { status: AgentEnd::Lost, .. }));
}

#[tokio::test]
async fn a_future_that_is_dropped_loses_no_progress() {
    let mut scene = Scene::new();
    scene.agents.pass(spawned("a1", "t1", None, true));
    scene.write("a1", &text("kept"));
    for _ in 0..20 {
        tokio::select! {
            biased;
            fact = scene.agents.next() => {
                assert_eq!(fact, progress("a1", "t1", "kept"));
                return;
            }
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(scene.next().await, progress("a1", "t1", "kept"));
}
