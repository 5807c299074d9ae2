//! Typing while a permission request arrives: no key that was meant for the draft can answer it,
//! and no character is lost.

use std::thread;
use std::time::{Duration, Instant};

use claw_tests::harness::Running;
use claw_tests::mock_api::{Gate, MessagesStream, MockApi};
use claw_tests::story::{DOWN, ENTER, ESC, TAB, UP, open, prompts, tool_result};

/// Runs with keys drawn at random.
const SEEDS: u64 = 50;
/// Runs that go side by side: typing is mostly waiting.
const SIDE_BY_SIDE: u64 = 10;
/// The pace of a quick typist. This pause is the input, not a wait for something.
const PACE: Duration = Duration::from_millis(60);
/// How long the draft must be left alone before the dialog may take the keys.
const QUIET: Duration = Duration::from_millis(600);

const NOTICE: &str = "stop typing, or Tab to answer";

/// A stream of numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    /// What people type, with the letters that other programs take for answers more often.
    fn key(&mut self) -> char {
        const KEYS: &[u8] = b"ynapynapynap123123   abcdefghijklmnopqrstuvwxyz";
        char::from(KEYS[self.below(KEYS.len() as u64) as usize])
    }
}

/// A turn whose answer asks, at the gate, for a command that creates a file.
fn turn_that_will_ask(api: &MockApi) -> (Running, Gate) {
    let gate = Gate::new();
    let asks = MessagesStream::new().text(&["Let me see."]).wait(&gate);
    let asks = asks.tool_use("toolu_1", "bash", r#"{"command":"touch marker"}"#);
    api.push(asks.stop("tool_use", 9).reply());
    api.push(MessagesStream::say("Then not."));
    api.push(MessagesStream::say("Read it."));
    let mut claw = open(api);
    claw.say("go");
    claw.wait_for("Let me see.");
    (claw, gate)
}

/// Types these characters at the pace and returns them.
fn type_at_pace(claw: &mut Running, typed: &mut String, keys: impl IntoIterator<Item = char>) {
    for key in keys {
        claw.send(key.to_string());
        typed.push(key);
        thread::sleep(PACE);
    }
}

fn typing_through_a_request(seed: u64) {
    let mut random = Random(seed);
    let api = MockApi::start();
    let (mut claw, gate) = turn_that_will_ask(&api);
    // The request comes after one to four seconds, Enter 100 to 300 ms later.
    let before = 16 + random.below(50);
    let after = 2 + random.below(4);
    let mut typed = String::new();
    type_at_pace(&mut claw, &mut typed, ['x']);
    type_at_pace(&mut claw, &mut typed, (0..before).map(|_| random.key()).collect::<Vec<_>>());
    gate.release();
    type_at_pace(&mut claw, &mut typed, (0..after).map(|_| random.key()).collect::<Vec<_>>());
    type_at_pace(&mut claw, &mut typed, ['x']);
    let enter = Instant::now();
    claw.send(ENTER);
    claw.wait_for(NOTICE);
    claw.wait_for(&format!("> {typed}"));
    claw.wait_for("queued");
    // The dialog comes by itself once nothing is typed any more, and not before.
    claw.wait_for_dialog();
    assert!(enter.elapsed() >= QUIET, "the dialog took the keys too early");
    assert_eq!(api.requests().len(), 1, "something was answered");
    claw.send(ENTER);
    claw.wait_for("Read it.");
    claw.wait_ready();
    assert!(!claw.workspace().join("marker").exists());
    let requests = api.requests();
    let (result, is_error) = tool_result(&requests[1], "toolu_1").expect("a result");
    assert!(is_error && result.contains("denied"), "{result}");
    assert_eq!(prompts(&requests[2]), ["go".to_owned(), typed]);
}

#[test]
fn typing_through_a_permission_request_never_answers_it_and_loses_no_character() {
    for first in (0..SEEDS).step_by(SIDE_BY_SIDE as usize) {
        thread::scope(|scope| {
            for seed in first..first + SIDE_BY_SIDE {
                scope.spawn(move || typing_through_a_request(seed));
            }
        });
    }
}

/// What a key of the dialog does while the dialog does not have the focus.
#[derive(Clone, Copy)]
enum Meaning {
    /// It edits or scrolls: the request goes on waiting, Enter sends the draft.
    Composer,
    /// It asks for the dialog, whose default is Deny.
    Focus,
    /// It stops the turn.
    Stop,
}

fn a_key_of_the_dialog(name: &str, key: &str, meaning: Meaning) {
    let api = MockApi::start();
    let (mut claw, gate) = turn_that_will_ask(&api);
    let mut typed = String::new();
    type_at_pace(&mut claw, &mut typed, "before".chars());
    gate.release();
    // The person is still typing when the request arrives, and presses the key right then.
    while !claw.text().contains(NOTICE) {
        assert!(typed.len() < 100, "no notice:\n{}", claw.text());
        type_at_pace(&mut claw, &mut typed, ['x']);
    }
    claw.send(key);
    thread::sleep(PACE);
    match meaning {
        Meaning::Composer => {
            claw.send(ENTER);
            claw.wait_for("queued");
            assert_eq!(api.requests().len(), 1, "{name} and Enter answered");
            claw.deny();
            claw.wait_for("Read it.");
        }
        Meaning::Focus => {
            claw.deny();
            claw.wait_for("Then not.");
            claw.wait_for(&format!("❯ {typed}"));
        }
        Meaning::Stop => {
            claw.wait_ready();
            claw.wait_for(&format!("❯ {typed}"));
        }
    }
    claw.wait_ready();
    assert!(!claw.workspace().join("marker").exists(), "{name} allowed the command");
}

#[test]
fn no_key_of_the_dialog_answers_a_request_that_is_not_in_focus() {
    let keys = [
        ("Tab", TAB, Meaning::Focus),
        ("Esc", ESC, Meaning::Stop),
        ("Enter", ENTER, Meaning::Composer),
        ("Up", UP, Meaning::Composer),
        ("Down", DOWN, Meaning::Composer),
        ("Left", "\x1b[D", Meaning::Composer),
        ("Right", "\x1b[C", Meaning::Composer),
        ("Home", "\x1b[H", Meaning::Composer),
        ("End", "\x1b[F", Meaning::Composer),
        ("PageUp", "\x1b[5~", Meaning::Composer),
        ("PageDown", "\x1b[6~", Meaning::Composer),
        ("Shift+Tab", "\x1b[Z", Meaning::Composer),
    ];
    thread::scope(|scope| {
        for (name, key, meaning) in keys {
            scope.spawn(move || a_key_of_the_dialog(name, key, meaning));
        }
    });
}

#[test]
fn a_letter_typed_into_the_open_dialog_goes_to_the_draft_and_answers_nothing() {
    let api = MockApi::start();
    let (mut claw, gate) = turn_that_will_ask(&api);
    gate.release();
    claw.wait_for_dialog();
    claw.send("y");
    claw.wait_for(NOTICE);
    claw.wait_for("❯ y");
    assert_eq!(api.requests().len(), 1);
    // Left alone, the dialog comes back with Deny in front.
    claw.deny();
    claw.wait_for("Then not.");
    assert!(!claw.workspace().join("marker").exists());
}
