//! The CLI behind the tap: it takes the address, its requests pass, and its text is seen as it comes.

use std::collections::BTreeSet;
use std::ffi::OsString;

use claw_tests::mock_api::{Gate, MessagesStream, Reply};
use claw_workers::environment::child_environment;
use claw_workers::tap::{Tap, Tapped};
use claw_workers::{Fact, Transport};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::cli::{Room, Version, on_both_versions, print_command};

on_both_versions!(
    the_answer_passes_and_its_text_is_seen_while_it_comes,
    what_it_asks_on_the_side_is_not_told,
    after_clear_the_requests_name_another_session,
    a_proxy_of_the_environment_is_not_in_the_way,
    a_failure_passes_and_the_retry_as_well,
    an_end_in_the_middle_reaches_the_model,
    the_text_of_a_sub_agent_is_told_as_its_own,
);

fn session() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The environment of a worker that goes through this tap.
fn environment(room: &Room, tap: &Tap) -> Vec<(OsString, OsString)> {
    child_environment(&room.config(Transport::Pty), "interop", Some(tap.base_url()))
}

async fn next(watched: &mut UnboundedReceiver<Tapped>) -> Tapped {
    watched.recv().await.expect("the tap lives")
}

/// The text that was told until this much has come.
async fn text_of(watched: &mut UnboundedReceiver<Tapped>, wanted: &str) -> String {
    let mut told = String::new();
    while told != wanted {
        let Tapped::Fact { fact, .. } = next(watched).await else { continue };
        if let Fact::TextDelta { text, .. } = *fact {
            told.push_str(&text);
        }
        assert!(wanted.starts_with(&told), "{told:?} is not the beginning of {wanted:?}");
    }
    told
}

fn result_of(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
}

async fn the_answer_passes_and_its_text_is_seen_while_it_comes(room: &Room) {
    let tap = Tap::start(room.api.base_url()).expect("a tap");
    let gate = Gate::new();
    let answer = MessagesStream::new().thinking(&["let me ", "see"], "signed").text(&["Hel"]);
    let answer = answer.wait(&gate).text(&["lo 🎉"]).stop("end_turn", 5).reply();
    room.api.push(answer.header("request-id", "req_1"));
    let session = session();
    let mut watched = tap.watch(&session);
    let environment = environment(room, &tap);
    let child = print_command(room, &session, &environment, "say hello").spawn().expect("a CLI");
    // The model holds the rest back, and the beginning is here.
    text_of(&mut watched, "Hel").await;
    gate.release();
    text_of(&mut watched, "lo 🎉").await;
    let output = child.wait_with_output().await.expect("it ends");
    let result = result_of(&output);
    assert_eq!((&result["is_error"], &result["result"]), (&Value::from(false), &"lo 🎉".into()));
    assert_eq!(result["session_id"], session.as_str());
    let questions = room.questions();
    assert_eq!(questions.len(), 1);
    assert_eq!(questions[0].path, "/v1/messages?beta=true");
    assert_eq!(questions[0].header("x-claude-code-session-id"), Some(session.as_str()));
    assert!(questions[0].header("x-api-key").is_some());
    assert_eq!(questions[0].header("accept-encoding"), None);
    assert!(questions[0].last_user_text().contains("say hello"));
}

/// The interactive CLI, in which the older version also asks for a title of the session.
async fn what_it_asks_on_the_side_is_not_told(room: &Room) {
    let tap = Tap::start(room.api.base_url()).expect("a tap");
    room.trust_workspace();
    room.api.push(MessagesStream::say("the answer"));
    let session = session();
    let mut watched = tap.watch(&session);
    let environment = environment(room, &tap);
    let arguments = ["--session-id", &session, "--permission-mode", "default"];
    let mut terminal = room.interactive(&arguments, &environment);
    terminal.until_shows("❯").await;
    terminal.submit("please answer").await;
    terminal.until_shows("the answer").await;
    if room.version == Version::V197 {
        room.on_model(|api| api.wait_for_requests(3)).await;
        let asides = room.api.requests().len() - room.questions().len();
        assert_eq!(asides, 2, "a HEAD and a title");
    }
    drop(terminal);
    drop(tap);
    let (mut told, mut began, mut ended) = (String::new(), 0, 0);
    while let Some(tapped) = watched.recv().await {
        match tapped {
            Tapped::RequestBegan { .. } => began += 1,
            Tapped::RequestEnded { .. } => ended += 1,
            Tapped::Fact { fact, .. } => {
                if let Fact::TextDelta { text, .. } = *fact {
                    told.push_str(&text);
                }
            }
        }
    }
    assert_eq!((told.as_str(), began), ("the answer", ended));
}

/// Whoever follows a session by its id must follow it to the next one.
async fn after_clear_the_requests_name_another_session(room: &Room) {
    let tap = Tap::start(room.api.base_url()).expect("a tap");
    room.trust_workspace();
    room.api.push(MessagesStream::say("first answer"));
    room.api.push(MessagesStream::say("second answer"));
    let session = session();
    let environment = environment(room, &tap);
    let arguments = ["--session-id", &session, "--permission-mode", "default"];
    let mut terminal = room.interactive(&arguments, &environment);
    terminal.until_shows("❯").await;
    terminal.submit("please answer").await;
    terminal.until_shows("first answer").await;
    terminal.submit("/clear").await;
    terminal.until("an empty screen", |text| (!text.contains("first answer")).then_some(())).await;
    terminal.submit("please once more").await;
    terminal.until_shows("second answer").await;
    let questions = room.questions();
    let named: Vec<_> =
        questions.iter().map(|asked| asked.header("x-claude-code-session-id")).collect();
    assert_eq!(named.len(), 2);
    assert_eq!(named[0], Some(session.as_str()));
    assert!(named[1].is_some_and(|second| second != session), "{named:?}");
}

async fn a_proxy_of_the_environment_is_not_in_the_way(room: &Room) {
    let tap = Tap::start(room.api.base_url()).expect("a tap");
    room.api.push(MessagesStream::say("past it"));
    let mut config = room.config(Transport::Pty);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        config.environment.push((name.into(), "http://127.0.0.1:9".into()));
    }
    let environment = child_environment(&config, "interop", Some(tap.base_url()));
    let output = print_command(room, &session(), &environment, "go").output().await;
    assert_eq!(result_of(&output.expect("it runs"))["result"], "past it");
}

async fn a_failure_passes_and_the_retry_as_well(room: &Room) {
    let tap = Tap::start(room.api.base_url()).expect("a tap");
    let busy = Reply::error(529, "overloaded_error", "Overloaded").header("retry-after", "0");
    room.api.push(busy);
    room.api.push(MessagesStream::say("at last"));
    let session = session();
    let mut watched = tap.watch(&session);
    let environment = environment(room, &tap);
    let output = print_command(room, &session, &environment, "go").output().await;
    assert_eq!(result_of(&output.expect("it runs"))["result"], "at last");
    let (mut ends, mut retries) = (Vec::new(), Vec::new());
    while ends.len() < 2 {
        match next(&mut watched).await {
            Tapped::RequestEnded { status, .. } => ends.push(status),
            Tapped::Fact { fact, .. } if matches!(*fact, Fact::Retry { .. }) => retries.push(fact),
            _ => {}
        }
    }
    assert_eq!(ends, [Some(529), Some(200)]);
    assert!(matches!(*retries[0], Fact::Retry { attempt: 1, .. }) && retries.len() == 1);
}

async fn an_end_in_the_middle_reaches_the_model(room: &Room) {
    let tap = Tap::start(room.api.base_url()).expect("a tap");
    room.api.push(MessagesStream::new().open_text(&["never "]).reply().stall());
    let session = session();
    let mut watched = tap.watch(&session);
    let environment = environment(room, &tap);
    let child = print_command(room, &session, &environment, "go").spawn().expect("a CLI");
    text_of(&mut watched, "never ").await;
    drop(child);
    while !matches!(next(&mut watched).await, Tapped::RequestEnded { .. }) {}
    room.on_model(|api| api.wait_for_hang_ups(1)).await;
}

async fn the_text_of_a_sub_agent_is_told_as_its_own(room: &Room) {
    let tap = Tap::start(room.api.base_url()).expect("a tap");
    let task = json!({
        "description": "look around", "prompt": "look around", "subagent_type": "general-purpose",
        "run_in_background": false,
    });
    let launch = MessagesStream::new().tool_use("toolu_1", "Agent", &task.to_string());
    room.answer_asides_and(move |request| {
        if request.header("x-claude-code-agent-id").is_some() {
            return MessagesStream::say("the agent's report");
        }
        let launched = request.body.to_string().contains("toolu_1");
        let end = |stream: MessagesStream| stream.stop("tool_use", 5).reply();
        if launched { MessagesStream::say("all done") } else { end(launch.clone()) }
    });
    let session = session();
    let mut watched = tap.watch(&session);
    let environment = environment(room, &tap);
    let output = print_command(room, &session, &environment, "go").output().await;
    assert_eq!(result_of(&output.expect("it runs"))["result"], "all done");
    drop(tap);
    let (mut of_agent, mut own, mut ids) = (String::new(), String::new(), BTreeSet::new());
    while let Some(tapped) = watched.recv().await {
        let Tapped::Fact { agent, fact } = tapped else { continue };
        let Fact::TextDelta { text, .. } = *fact else { continue };
        let whose = if agent.is_some() { &mut of_agent } else { &mut own };
        whose.push_str(&text);
        ids.extend(agent);
    }
    assert_eq!((of_agent.as_str(), ids.len()), ("the agent's report", 1));
    assert!(own.ends_with("all done"), "{own}");
}
