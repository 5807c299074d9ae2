//! What the CLI asks, answered through the backend as the front-end answers it: screen, hook and
//! transcript agree with what the person decided.

use std::sync::Arc;

use claw_runtime::permissions::PermissionPromptDecision as Decision;
use claw_runtime::permissions::{PermissionRequest, QuestionAnswer, RequestKind};
use claw_tests::client_talk::ClientTalk;
use claw_tests::mock_api::MessagesStream;
use claw_workers::{Host, Transport, WorkerConfig};
use serde_json::{Value, json};

use crate::cli::{Room, Version, on_both_versions};
use crate::stream_worker::config;

on_both_versions!(
    questions_of_the_model_are_answered,
    a_question_that_is_refused_is_told_as_refused,
    a_plan_is_approved_and_begun,
    a_plan_that_is_sent_back_stays_a_plan,
    a_changed_command_runs_as_it_was_changed,
    calls_side_by_side_are_asked_about_each,
);

const TRANSPORTS: [Transport; 2] = [Transport::Pty, Transport::Stream];

fn talk(
    room: &Room,
    transport: Transport,
    mode: &str,
    answer: impl FnMut(&PermissionRequest) -> Decision + Send + 'static,
) -> ClientTalk {
    let config = WorkerConfig {
        transport,
        permission_mode: mode.to_owned(),
        ..config(room, room.api.base_url())
    };
    ClientTalk::new(config, Arc::new(Host::default()), answer)
}

fn call(id: &str, name: &str, input: &Value) -> MessagesStream {
    MessagesStream::new().tool_use(id, name, &input.to_string())
}

fn which_colour() -> Value {
    json!({"questions": [
        {"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": [
            {"label": "Red", "description": "the warm one"},
            {"label": "Blue", "description": "the cold one"}]},
        {"question": "Which parts?", "header": "Parts", "multiSelect": true, "options": [
            {"label": "Doors", "description": "all of them"},
            {"label": "Roof", "description": "the top"}]},
    ]})
}

/// What the model heard as the result of its last call.
fn last_result(room: &Room) -> String {
    let question = room.questions().pop().expect("a question");
    let messages = question.body["messages"].as_array().cloned().unwrap_or_default();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let mut results = blocks.filter(|block| block["type"] == "tool_result");
    results.next_back().map(|block| block["content"].to_string()).unwrap_or_default()
}

async fn questions_of_the_model_are_answered(room: &Room) {
    room.trust_workspace();
    for transport in TRANSPORTS {
        let mut talk = talk(room, transport, "default", |request| {
            let RequestKind::Questions(questions) = &request.kind else { panic!("{request:?}") };
            let words = ["Blue", "Doors, Roof"];
            let answers = questions.iter().zip(words).map(|(question, words)| QuestionAnswer {
                question: question.question.clone(),
                answer: words.to_owned(),
            });
            Decision::Answers(answers.collect())
        });
        room.api
            .push(call("toolu_1", "AskUserQuestion", &which_colour()).stop("tool_use", 9).reply());
        room.api.push(MessagesStream::say("So be it."));
        assert_eq!(talk.say("paint it").await, "So be it.");
        let heard = last_result(room);
        assert!(heard.contains("Blue") && heard.contains("Doors, Roof"), "{transport:?}: {heard}");
        talk.end().await;
    }
}

async fn a_question_that_is_refused_is_told_as_refused(room: &Room) {
    room.trust_workspace();
    for transport in TRANSPORTS {
        let mut talk = talk(room, transport, "default", |_| Decision::Deny {
            reason: Some("you choose".into()),
        });
        room.api
            .push(call("toolu_1", "AskUserQuestion", &which_colour()).stop("tool_use", 9).reply());
        room.api.push(MessagesStream::say("Then red."));
        assert_eq!(talk.say("paint it").await, "Then red.");
        assert!(last_result(room).contains("you choose"), "{transport:?}: {}", last_result(room));
        talk.end().await;
    }
}

/// A plan where this version says it: in the call, or in a file that the CLI names.
fn plan_call(room: &Room, id: &str) -> MessagesStream {
    match room.version {
        Version::V197 => call(id, "ExitPlanMode", &json!({"plan": "1. Look\n2. Build"})),
        Version::V332 => call(id, "ExitPlanMode", &json!({})),
    }
}

/// The file that the CLI has told the model to write its plan into.
fn write_plan_file(room: &Room) -> bool {
    let question = room.questions().pop().expect("a question");
    let told = question.body.to_string();
    let plans = room.config_dir().join("plans");
    let begin = told.find(&*plans.to_string_lossy());
    let path = begin.and_then(|begin| told[begin..].split_inclusive(".md").next());
    let Some(path) = path else { return false };
    std::fs::create_dir_all(&plans).expect("a folder");
    std::fs::write(path, "1. Look\n2. Build").expect("a plan");
    true
}

async fn a_plan_is_approved_and_begun(room: &Room) {
    room.trust_workspace();
    let mut talk = talk(room, Transport::Pty, "plan", |request| match &request.kind {
        RequestKind::Plan { text } => {
            Decision::ApprovePlan { text: text.replace("Look", "Look twice") }
        }
        _ => Decision::AllowOnce,
    });
    room.api.push(MessagesStream::say("I think about it."));
    talk.say("plan something").await;
    assert!(room.version == Version::V197 || write_plan_file(room), "no plan file is named");
    room.api.push(plan_call(room, "toolu_1").stop("tool_use", 9).reply());
    room.api.push(MessagesStream::say("I begin."));
    assert_eq!(talk.say("go on").await, "I begin.");
    let asked = talk.asked();
    let plan = RequestKind::Plan { text: "1. Look\n2. Build".into() };
    assert_eq!(asked.last().map(|request| &request.kind), Some(&plan));
    assert!(last_result(room).contains("Look twice"), "{}", last_result(room));
    talk.end().await;
}

async fn a_plan_that_is_sent_back_stays_a_plan(room: &Room) {
    room.trust_workspace();
    let mut talk = talk(room, Transport::Pty, "plan", |_| Decision::Deny {
        reason: Some("look twice".into()),
    });
    room.api.push(MessagesStream::say("I think about it."));
    talk.say("plan something").await;
    assert!(room.version == Version::V197 || write_plan_file(room), "no plan file is named");
    room.api.push(plan_call(room, "toolu_1").stop("tool_use", 9).reply());
    room.api.push(MessagesStream::say("I look again."));
    assert_eq!(talk.say("go on").await, "I look again.");
    assert!(last_result(room).contains("look twice"), "{}", last_result(room));
    talk.end().await;
}

async fn a_changed_command_runs_as_it_was_changed(room: &Room) {
    room.trust_workspace();
    for transport in TRANSPORTS {
        let mut talk = talk(room, transport, "default", |request| Decision::AllowInput {
            input: request.input.replace("first", "second"),
        });
        room.api.push(
            call("toolu_1", "Bash", &json!({"command": "touch first"})).stop("tool_use", 9).reply(),
        );
        room.api.push(MessagesStream::say("Made."));
        assert_eq!(talk.say("make it").await, "Made.");
        assert!(room.workspace().join("second").exists(), "{transport:?}");
        assert!(!room.workspace().join("first").exists(), "{transport:?}");
        std::fs::remove_file(room.workspace().join("second")).expect("it is there");
        talk.end().await;
    }
}

async fn calls_side_by_side_are_asked_about_each(room: &Room) {
    room.trust_workspace();
    for transport in TRANSPORTS {
        let mut talk = talk(room, transport, "default", |request| {
            if request.input.contains("touch no") {
                Decision::Deny { reason: Some("not this one".into()) }
            } else {
                Decision::AllowOnce
            }
        });
        let calls = call("toolu_1", "Bash", &json!({"command": "touch one"}))
            .tool_use("toolu_2", "Bash", &json!({"command": "touch no"}).to_string())
            .tool_use("toolu_3", "Bash", &json!({"command": "touch two"}).to_string());
        room.api.push(calls.stop("tool_use", 9).reply());
        room.api.push(MessagesStream::say("Two of three."));
        assert_eq!(talk.say("make them").await, "Two of three.");
        let made = |name: &str| room.workspace().join(name).exists();
        assert!(made("one") && made("two") && !made("no"), "{transport:?}");
        let asked: Vec<String> =
            talk.asked().into_iter().map(|request| request.tool_use_id).collect();
        assert_eq!(asked, ["toolu_1", "toolu_2", "toolu_3"], "{transport:?}");
        for name in ["one", "two"] {
            std::fs::remove_file(room.workspace().join(name)).expect("it is there");
        }
        talk.end().await;
    }
}
