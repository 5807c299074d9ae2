//! Real processes over real pipes.

use std::time::Duration;

use super::scripted::{Driven, OPENED, SESSION, Script, pieces, said};
use crate::error::WorkerError;
use crate::event::{Asked, SteerError, TurnEnd, Verdict, WorkerEvent};
use crate::fact::{DeniedBy, Fact};
use crate::process::ProcessId;

fn asked(event: WorkerEvent) -> Option<Asked> {
    match event {
        WorkerEvent::Asked(asked) => Some(asked),
        _ => None,
    }
}

fn ended_turn(event: WorkerEvent) -> Option<(TurnEnd, bool)> {
    match event {
        WorkerEvent::TurnEnded { end, unasked } => Some((end, unasked)),
        _ => None,
    }
}

fn ended(event: WorkerEvent) -> Option<WorkerError> {
    match event {
        WorkerEvent::Ended(error) => Some(error),
        _ => None,
    }
}

/// A script of a capture: what was written there is expected, what was said there is said.
fn script_of(path: &str) -> (Script, Vec<serde_json::Value>) {
    let mut written = Vec::new();
    let mut script = Script::new();
    for (mut lines, next) in pieces(path) {
        // There the first prompt was written without waiting for this answer.
        let opened = |line: &String| line.contains("\"request_id\":\"open\"");
        lines.retain(|line| !opened(line));
        script = script.say(&lines);
        if let Some(line) = next {
            let part =
                ["initialize", "interrupt", "\"behavior\":\"allow\"", "\"behavior\":\"deny\""]
                    .into_iter()
                    .find(|part| line.to_string().contains(part))
                    .map_or_else(
                        || line["message"]["content"][0]["text"].to_string(),
                        str::to_owned,
                    );
            script = script.expect(&part);
            if part == "initialize" {
                script = script.say(&[OPENED.to_owned()]);
            }
            written.push(line);
        }
    }
    (script.wait(), written)
}

fn prompts(written: &[serde_json::Value]) -> Vec<String> {
    let prompts = written.iter().filter(|line| line["type"] == "user");
    prompts.map(|line| line["message"]["content"][0]["text"].as_str().unwrap().to_owned()).collect()
}

/// Plays a capture of whole turns; every question is answered as it was there.
async fn play(path: &str) -> (Vec<String>, Vec<(TurnEnd, bool)>) {
    let (script, written) = script_of(path);
    let mut driven = script.start();
    driven.ready().await;
    let (mut facts, mut ends) = (Vec::new(), Vec::new());
    let mut answers = written.iter().filter(|line| line["type"] == "control_response");
    for prompt in prompts(&written) {
        driven.worker.submit(prompt).await.unwrap();
        loop {
            match driven.next().await {
                WorkerEvent::Fact { fact, unasked } => {
                    assert!(!unasked, "{fact:?}");
                    facts.push(format!("{fact:?}"));
                }
                WorkerEvent::Asked(asked) => {
                    let verdict = &answers.next().unwrap()["response"]["response"];
                    let verdict = match verdict["message"].as_str() {
                        Some(message) => {
                            Verdict::Deny { message: message.to_owned(), interrupt: false }
                        }
                        None => Verdict::Allow {
                            updated_input: Some(verdict["updatedInput"].to_string()),
                        },
                    };
                    asked.reply.send(verdict).unwrap();
                }
                WorkerEvent::TurnEnded { end, unasked } => {
                    ends.push((end, unasked));
                    break;
                }
                _ => {}
            }
        }
    }
    driven.worker.stop().await;
    (facts, ends)
}

fn completed(text: &str) -> (TurnEnd, bool) {
    (TurnEnd::Completed { last_message: Some(text.to_owned()) }, false)
}

#[tokio::test]
async fn captured_turns_end_as_they_did_with_both_versions() {
    let two = [
        completed("Greetings, after some thought."),
        completed("Hello from the mock. This is a simple text answer."),
    ];
    let done = [completed("All done: one command, one file written, read and edited.")];
    for version in ["2.1.197", "2.1.332"] {
        let (_, ends) = play(&format!("{version}/text-and-thinking-two-turns.jsonl")).await;
        assert_eq!(ends, two);
        let (facts, ends) = play(&format!("{version}/tools-permission-allowed.jsonl")).await;
        assert_eq!(ends, done);
        let started = facts.iter().filter(|fact| fact.starts_with("ToolStarted")).count();
        assert_eq!(started, 2, "what was asked and allowed is said to run");
    }
    let (facts, ends) = play("2.1.332/ask-user-question.jsonl").await;
    assert_eq!(ends, [completed("Thanks for the answer.")]);
    assert!(facts.iter().any(|fact| fact.contains("Your questions have been answered")));
    let (facts, ends) = play("2.1.332/permission-denied.jsonl").await;
    assert_eq!(ends, [completed("The command step is over.")]);
    assert!(facts.iter().any(|fact| fact.contains("no by host") && fact.contains("Person")));
}

#[tokio::test]
async fn a_captured_interrupt_ends_the_turn_only() {
    let (script, written) = script_of("2.1.332/interrupt.jsonl");
    let mut driven = script.start();
    driven.ready().await;
    driven.worker.submit(prompts(&written).remove(0)).await.unwrap();
    driven.find(|event| matches!(event, WorkerEvent::Fact { .. }).then_some(())).await;
    driven.worker.interrupt();
    assert_eq!(driven.find(ended_turn).await, (TurnEnd::Interrupted, false));
    driven.worker.stop().await;
}

#[tokio::test]
async fn a_captured_steering_is_taken_in_the_turn() {
    let (script, written) = script_of("2.1.332/steering.jsonl");
    let mut driven = script.start();
    driven.ready().await;
    let prompts = prompts(&written);
    driven.worker.submit(prompts[0].clone()).await.unwrap();
    driven.find(|event| matches!(event, WorkerEvent::Fact { .. }).then_some(())).await;
    assert_eq!(driven.worker.steer(prompts[1].clone()).await, Ok(()));
    assert_eq!(driven.find(ended_turn).await, completed("Slept well."));
    driven.worker.stop().await;
}

fn turn_with_question(part: &str) -> Script {
    Script::opened()
        .expect("\"go\"")
        .say(&[said::init(), said::question("r1", "t1")])
        .expect(part)
        .say(&[said::result("Done.")])
        .wait()
}

async fn with_question(driven: &mut Driven) -> Asked {
    driven.ready().await;
    driven.worker.submit("go".to_owned()).await.unwrap();
    driven.find(asked).await
}

#[tokio::test]
async fn a_dropped_reply_denies() {
    let mut driven = turn_with_question("\"behavior\":\"deny\"").start();
    drop(with_question(&mut driven).await);
    assert_eq!(driven.find(ended_turn).await, completed("Done."));
}

#[tokio::test]
async fn an_answer_that_is_given_at_once_is_delivered() {
    let mut driven = turn_with_question("\"behavior\":\"allow\"").start();
    let asked = with_question(&mut driven).await;
    asked.reply.send(Verdict::Allow { updated_input: None }).unwrap();
    assert_eq!(driven.find(ended_turn).await, completed("Done."));
}

#[tokio::test]
async fn two_sessions_never_see_each_others_questions() {
    let mut first = turn_with_question("\"behavior\":\"allow\"").start();
    let mut second = turn_with_question("\"behavior\":\"deny\"").start();
    // The same ids in both.
    let (one, two) = tokio::join!(with_question(&mut first), with_question(&mut second));
    two.reply.send(Verdict::Deny { message: "no".to_owned(), interrupt: false }).unwrap();
    one.reply.send(Verdict::Allow { updated_input: None }).unwrap();
    assert_eq!(first.find(ended_turn).await, completed("Done."));
    assert_eq!(second.find(ended_turn).await, completed("Done."));
}

#[tokio::test]
async fn a_question_of_a_process_that_dies_is_retired() {
    let script = Script::opened()
        .expect("\"go\"")
        .say(&[said::init(), said::question("r1", "t1")])
        .run("echo 'boom' >&2; exit 7");
    let mut driven = script.start();
    let asked = with_question(&mut driven).await;
    let rest = driven.rest().await;
    assert!(matches!(&rest[0], WorkerEvent::AskedRetired { tool_use_id: Some(id) } if id == "t1"));
    let Some(WorkerEvent::Ended(WorkerError::Crashed { status, screen, may_have_run: true })) =
        rest.last()
    else {
        panic!("{rest:?}")
    };
    assert!(status.contains('7') && screen.contains("boom"), "{status} {screen}");
    assert!(asked.reply.send(Verdict::Allow { updated_input: None }).is_err());
}

#[tokio::test]
async fn a_process_that_ends_at_its_start_says_what_it_said() {
    let mut driven = Script::new().run("echo 'No conversation found' >&2; exit 1").start();
    let error = driven.find(ended).await;
    let WorkerError::StartFailed { status, screen } = error else { panic!("{error}") };
    assert!(status.contains('1') && screen.contains("No conversation found"));
    assert!(matches!(driven.worker.submit("x".to_owned()).await, Err(WorkerError::Stopped)));
}

#[tokio::test]
async fn a_prompt_that_is_not_read_ends_by_its_deadline_with_what_was_accepted() {
    let mut driven = Script::opened().run("exec sleep 60").start();
    driven.ready().await;
    let text = "x".repeat(1024 * 1024);
    let error = driven.worker.submit(text).await.unwrap_err();
    let WorkerError::NotReading { accepted, total, .. } = error else { panic!("{error}") };
    assert!(accepted > 0 && accepted < total && total > 1024 * 1024, "{accepted} of {total}");
    assert!(matches!(driven.find(ended).await, WorkerError::NotReading { .. }));
}

#[tokio::test]
async fn steering_that_is_not_read_ends_by_its_deadline_while_the_turn_goes_on() {
    let script = Script::opened()
        .expect("\"go\"")
        .say(&[said::init(), said::text("one", "Before.")])
        .run("while [ ! -e go-on ]; do sleep 0.02; done")
        .say(&[said::text("two", "After."), said::result("After.")])
        .run("exec sleep 60");
    let mut driven = script.start();
    driven.ready().await;
    driven.worker.submit("go".to_owned()).await.unwrap();
    let steered = driven.worker.steer("x".repeat(1024 * 1024)).await;
    let Err(SteerError::Refused(reason)) = steered else { panic!("{steered:?}") };
    assert!(reason.contains(" of 1048"), "{reason}");
    std::fs::write(driven.folder().join("go-on"), "").unwrap();
    let after = |event| match event {
        WorkerEvent::Fact { fact: Fact::Block { message, .. }, .. } if message == "two" => Some(()),
        _ => None,
    };
    driven.find(after).await;
    assert_eq!(driven.find(ended_turn).await, completed("After."));
    assert!(matches!(driven.find(ended).await, WorkerError::NotReading { .. }));
}

#[tokio::test]
async fn a_line_over_the_limit_is_refused_by_name() {
    let script = Script::opened().run("head -c 17000000 /dev/zero | tr '\\0' x; exec sleep 60");
    let mut driven = script.start();
    driven.ready().await;
    let error = driven.find(ended).await;
    assert!(matches!(error, WorkerError::TooLarge { limit: 16_777_216, .. }), "{error}");
}

#[tokio::test]
async fn one_that_never_opens_is_not_ready_in_time() {
    let mut driven = Script::new()
        .run("echo 'waiting for the moon' >&2; exec sleep 60")
        .start_with_ready(Duration::from_millis(200));
    let error = driven.find(ended).await;
    let WorkerError::NotReady { screen, .. } = error else { panic!("{error}") };
    assert!(screen.contains("moon"));
}

#[tokio::test]
async fn stop_ends_one_that_does_not_want_to() {
    let mut driven =
        Script::opened().run("trap '' TERM HUP INT; while :; do sleep 0.1; done").start();
    driven.ready().await;
    driven.worker.stop().await;
    assert!(matches!(driven.events.recv().await, Some(WorkerEvent::Ended(WorkerError::Stopped))));
    assert!(driven.events.recv().await.is_none(), "nothing follows");
}

#[tokio::test]
async fn stop_ends_everything_that_was_started_also_what_has_left_its_session_and_environment() {
    let left = "setsid sleep 300 & echo $! > one; env -i setsid sleep 301 & echo $! > two; \
                touch begun; while IFS= read -r line; do :; done; exit 0";
    let mut driven = Script::opened().run(left).start();
    driven.ready().await;
    let pid = |name: &str| {
        let text = std::fs::read_to_string(driven.folder().join(name)).ok()?;
        ProcessId::of(text.trim().parse().ok()?)
    };
    let begun = || driven.folder().join("begun").exists().then(|| (pid("one"), pid("two")));
    let started = async {
        loop {
            if let Some((Some(one), Some(two))) = begun() {
                return [one, two];
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let started = tokio::time::timeout(Duration::from_secs(10), started).await.unwrap();
    assert!(started.iter().all(|one| one.lives()));
    driven.worker.stop().await;
    assert!(started.iter().all(|one| !one.lives()), "{started:?}");
}

#[tokio::test]
async fn a_ready_worker_says_its_session_and_a_new_one_when_it_changes() {
    let other = said::init().replace(SESSION, "another");
    let mut driven = Script::opened().say(&[other, said::result("")]).wait().start();
    let ready = driven.next().await;
    assert!(
        matches!(ready, WorkerEvent::Ready { session_id, version } if session_id == SESSION && version == "2.1.332")
    );
    let changed = driven.next().await;
    assert!(
        matches!(changed, WorkerEvent::SessionChanged { session_id } if session_id == "another")
    );
}

#[tokio::test]
async fn what_nobody_can_answer_is_refused() {
    let request =
        r#"{"type":"control_request","request_id":"h1","request":{"subtype":"hook_callback"}}"#;
    let mut driven = Script::opened()
        .expect("\"go\"")
        .say(&["not json at all".to_owned(), request.to_owned()])
        .expect("\"subtype\":\"error\"")
        .say(&[said::init(), said::result("Fine.")])
        .wait()
        .start();
    driven.ready().await;
    driven.worker.submit("go".to_owned()).await.unwrap();
    assert_eq!(driven.find(ended_turn).await, completed("Fine."));
}

#[tokio::test]
async fn a_denied_call_is_marked_in_its_result() {
    let result = r#"{"type":"user","parent_tool_use_id":null,"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"no","is_error":true}]}}"#;
    let mut driven = Script::opened()
        .expect("\"go\"")
        .say(&[said::init(), said::question("r1", "t1")])
        .expect("\"behavior\":\"deny\"")
        .say(&[result.to_owned(), said::result("Done.")])
        .wait()
        .start();
    drop(with_question(&mut driven).await);
    let denied = |event| match event {
        WorkerEvent::Fact { fact: Fact::ToolResult { denied, .. }, .. } => Some(denied),
        _ => None,
    };
    assert_eq!(driven.find(denied).await, Some(DeniedBy::Person));
}
