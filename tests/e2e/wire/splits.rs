//! However the bytes are cut into chunks, the events and the turn are the same; and wherever the
//! answer is cut off, what had come is kept and nothing is made up.

use claw_runtime::api::{ApiError, AssistantTurn};
use claw_runtime::session::ContentBlock;
use claw_tests::mock_api::{ChatStream, MessagesStream, Reply};
use proptest::prelude::*;
use serde_json::json;

use super::stage::{Answer, Stage};

/// A reply with everything in it: many-byte characters, every kind of block, comments, all line ends.
fn messages() -> Reply {
    MessagesStream::new()
        .usage_start(100, 5, 50)
        .bytes(": komm\u{e9}ntar\r\n\r\n")
        .thinking(&["na ", "já 思考"], "c2ln+/=")
        .redacted_thinking("b3Bh")
        .text(&["Grüße, ", "👩‍👩‍👧 ", "wörld\n\n"])
        .bytes("event: new\r\ndata: {\"type\":\"new\"}\r\n\r\nretry: 5\rid: 1\r\r")
        .tool_use("t1", "bash", r#"{"command":"echo \"é\""}"#)
        .open_tool_use("t2", "a")
        .open_tool_use("t3", "b")
        .input_delta(4, "{}")
        .input_delta(3, r#"{"x":"#)
        .block_stop(4)
        .input_delta(3, "[1,2]}")
        .block_stop(3)
        .ping()
        .event("future", &json!({"type": "future"}))
        .stop("tool_use", 42)
        .reply()
}

fn chat() -> Reply {
    ChatStream::new()
        .reasoning(&["思", "考"])
        .text(&["Grüße, ", "👩‍👩‍👧"])
        .tool_call(0, "c1", "bash", r#"{"command":"echo \"é\""}"#)
        .tool_call(1, "c2", "read_file", r#"{"path":"ü"}"#)
        .finish("tool_calls")
        .usage(100, 5, 50)
        .done()
}

type Ask = fn(&Stage) -> Answer;

/// The wires: a whole reply, and how it is asked for.
fn wires() -> [(Reply, Ask); 2] {
    [(messages(), Stage::ask), (chat(), Stage::ask_chat)]
}

fn played(reply: Reply, ask: Ask) -> (Vec<String>, Answer) {
    let stage = Stage::with([reply]);
    let answer = ask(&stage);
    (stage.sink.lines(), answer)
}

#[track_caller]
fn check_same(whole: &Reply, split: Reply, ask: Ask) {
    let (expected_events, expected) = played(whole.clone(), ask);
    let (events, answer) = played(split, ask);
    assert_eq!(events, expected_events);
    assert_eq!(answer.unwrap(), expected.unwrap());
}

#[test]
fn one_byte_at_a_time_gives_the_same_events_and_the_same_turn() {
    for (whole, ask) in wires() {
        check_same(&whole, whole.clone().split_every(1), ask);
    }
}

/// The texts of a turn, pieces of one kind joined.
fn said(turn: &AssistantTurn) -> (String, String) {
    let (mut text, mut thinking) = (String::new(), String::new());
    for block in turn.messages.iter().flat_map(|message| &message.blocks) {
        match block {
            ContentBlock::Text { text: part } => text.push_str(part),
            ContentBlock::Thinking { thinking: part, .. } => thinking.push_str(part),
            _ => {}
        }
    }
    (text, thinking)
}

/// Plays `whole` up to byte `at`: what is kept was told, was said, and is not more than that.
#[track_caller]
fn check_cut(whole: &Reply, at: usize, ask: Ask) {
    let (all_events, all) = played(whole.clone(), ask);
    let all = all.unwrap();
    let (events, answer) = played(whole.clone().cut_after(at), ask);
    let partial = match answer {
        // Only the last bytes may be missing from an answer that counts as whole.
        Ok(turn) => return assert_eq!(turn.stop_reason, all.stop_reason),
        Err(ApiError::StreamCut { partial, .. }) => partial,
        Err(other) => panic!("{other:?}"),
    };
    let ((text, thinking), (all_text, all_thinking)) = (said(&partial), said(&all));
    assert!(all_text.starts_with(&text), "{text:?}");
    assert!(all_thinking.starts_with(&thinking), "{thinking:?}");
    let told = |kind: &str| -> String {
        events.iter().filter_map(|line| line.strip_prefix(kind)).collect()
    };
    assert_eq!(told("text "), text);
    assert_eq!(told("think "), thinking);
    for (id, name, input) in partial.messages.iter().flat_map(|message| message.tool_uses()) {
        let called = format!("called {id} {name} {input}");
        assert!(events.contains(&called) && all_events.contains(&called), "{called}");
    }
    assert!(!events.iter().any(|line| line.starts_with("stop ")), "{events:?}");
    let begun = events.iter().filter(|line| line.starts_with("call ")).count();
    let ended = |line: &&String| line.starts_with("called ") || line.starts_with("incomplete ");
    assert_eq!(events.iter().filter(ended).count(), begun, "{events:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_the_same_events_and_the_same_turn(
        mut cuts in prop::collection::vec(1_usize..3_500, 0..40),
        then in 1_usize..5_000,
    ) {
        cuts.sort_unstable();
        for (whole, ask) in wires() {
            check_same(&whole, whole.clone().split_at(&cuts, then), ask);
        }
    }

    #[test]
    fn any_cut_keeps_what_had_come_and_makes_nothing_up(at in 0_usize..4_000) {
        for (whole, ask) in wires() {
            let length = whole.body_bytes().len();
            check_cut(&whole, at % length, ask);
        }
    }
}
