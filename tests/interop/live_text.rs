//! The CLI behind the tap: it takes the address, its requests pass, and its text is seen as it comes.

use claw_tests::mock_api::{Gate, MessagesStream, Reply};
use claw_workers::Fact;
use claw_workers::tap::{Tap, Tapped};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::cli::{Room, on_both_versions, print_command};

on_both_versions!(
    the_answer_passes_and_its_text_is_seen_while_it_comes,
    what_it_asks_on_the_side_is_not_told,
    a_proxy_of_the_environment_is_not_in_the_way,
    a_failure_passes_and_the_retry_as_well,
    an_end_in_the_middle_reaches_the_model,
);

fn session() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The environment of a CLI that goes through this tap.
fn environment(room: &Room, tap: &Tap) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let mut environment = room.environment(room.api.base_url());
    let led = tap.environment(&environment);
    environment.extend(led);
    environment
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

async fn what_it_asks_on_the_side_is_not_told(room: &Room) {
    let tap = Tap::start(room.api.base_url()).expect("a tap");
    room.api.push(MessagesStream::say("the answer"));
    let session = session();
    let mut watched = tap.watch(&session);
    let environment = environment(room, &tap);
    let command = print_command(room, &session, &environment, "go").output().await;
    assert_eq!(result_of(&command.expect("it runs"))["result"], "the answer");
    drop(tap);
    let mut told = String::new();
    while let Some(tapped) = watched.recv().await {
        if let Tapped::Fact { fact, .. } = tapped
            && let Fact::TextDelta { text, .. } = *fact
        {
            told.push_str(&text);
        }
    }
    assert_eq!(told, "the answer");
}

async fn a_proxy_of_the_environment_is_not_in_the_way(room: &Room) {
    let tap = Tap::start(room.api.base_url()).expect("a tap");
    room.api.push(MessagesStream::say("past it"));
    let mut environment = environment(room, &tap);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        environment.push((name.into(), "http://127.0.0.1:9".into()));
    }
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
    let mut ends = Vec::new();
    while ends.len() < 2 {
        if let Tapped::RequestEnded { status, .. } = next(&mut watched).await {
            ends.push(status);
        }
    }
    assert_eq!(ends, [Some(529), Some(200)]);
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
