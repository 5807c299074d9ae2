//! Conversations outlive the program, branch, and never belong to two programs at once.

use claw_tests::mock_api::{Gate, MessagesStream, MockApi};
use claw_tests::story::{CTRL_C, DOWN, ENTER, answers, open, prompts};
use rustix::process::Signal;

/// A prompt and its answer, seen to the end.
fn talk(api: &MockApi, claw: &mut claw_tests::harness::Running, prompt: &str, answer: &str) {
    api.push(MessagesStream::say(answer));
    claw.say(prompt);
    claw.wait_for(answer);
    claw.wait_ready();
}

/// The id in the status report.
fn session_id(claw: &mut claw_tests::harness::Running) -> String {
    claw.command("/status", "Permission mode");
    let screen = claw.text();
    let at = screen.rfind("session-").expect("an id on the screen");
    screen[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
}

#[test]
fn after_a_kill_in_the_middle_of_an_answer_everything_before_it_is_there() {
    let api = MockApi::start();
    let mut claw = open(&api);
    talk(&api, &mut claw, "one", "Answer one.");
    let gate = Gate::new();
    api.push(MessagesStream::new().open_text(&["Half of two"]).wait(&gate).reply());
    claw.say("two");
    claw.wait_for("Half of two");
    claw.signal(Signal::KILL);
    claw.wait_back();

    let mut claw = claw.again().arg("--resume").start();
    claw.wait_ready();
    claw.wait_for("> one");
    claw.wait_for("Answer one.");
    claw.wait_for("> two");
    // What was shown was saved, and it is told that it is not the whole.
    claw.wait_for("Half of two");
    claw.wait_for("cut off");
    api.push(MessagesStream::say("Answer two."));
    claw.command("/retry", "Answer two.");
    claw.wait_ready();
    let requests = api.requests();
    let last = requests.last().expect("a request");
    assert_eq!(prompts(last), ["one", "two"]);
    assert_eq!(answers(last), ["Answer one."]);
}

#[test]
fn a_session_that_is_open_elsewhere_is_refused_with_a_way_out() {
    let api = MockApi::start();
    let mut first = open(&api);
    talk(&api, &mut first, "one", "Answer one.");
    let id = session_id(&mut first);
    let mut second = first.again().arg("--resume").arg(id.as_str()).start();
    second.wait_for("is open in another process");
    second.wait_for("A new session was begun instead");
    // Both go on, each in its own session.
    talk(&api, &mut second, "hello", "Answer elsewhere.");
    talk(&api, &mut first, "two", "Answer two.");
    let requests = api.requests();
    assert_eq!(prompts(&requests[1]), ["hello"]);
    assert_eq!(prompts(&requests[2]), ["one", "two"]);
}

#[test]
fn a_fork_and_its_parent_go_on_independently() {
    let api = MockApi::start();
    let mut claw = open(&api);
    talk(&api, &mut claw, "one", "Answer one.");
    let parent = session_id(&mut claw);
    claw.send(format!("/session fork experiment {ENTER}"));
    // The fork opens with the conversation, without what was only shown.
    claw.wait_gone("Permission mode");
    claw.wait_for("Answer one.");
    let fork = session_id(&mut claw);
    assert_ne!(fork, parent);
    claw.wait_for("experiment");
    talk(&api, &mut claw, "in the fork", "Answer of the fork.");
    assert_eq!(prompts(&api.requests()[1]), ["one", "in the fork"]);
    claw.send(format!("/session switch {parent} {ENTER}"));
    claw.wait_gone("Answer of the fork.");
    claw.wait_for("Answer one.");
    talk(&api, &mut claw, "in the parent", "Answer of the parent.");
    assert_eq!(prompts(&api.requests()[2]), ["one", "in the parent"]);
    claw.send(format!("/session switch {fork} {ENTER}"));
    claw.wait_for("Answer of the fork.");
    talk(&api, &mut claw, "on", "On in the fork.");
    assert_eq!(prompts(&api.requests()[3]), ["one", "in the fork", "on"]);

    let files = claw.session_files();
    let of_fork = files.iter().find(|(path, _)| path.to_string_lossy().contains(&fork));
    let (_, text) = of_fork.expect("a file of the fork");
    assert!(text.contains(&format!("\"parent_session_id\":\"{parent}\"")), "{text}");
    assert!(text.contains("\"branch_name\":\"experiment\""), "{text}");
    assert!(files.iter().any(|(path, _)| path.to_string_lossy().contains(&parent)));
}

#[test]
fn the_list_of_sessions_opens_the_one_that_is_chosen() {
    let api = MockApi::start();
    let mut claw = open(&api);
    talk(&api, &mut claw, "the older prompt", "The older answer.");
    claw.send(format!("/clear {ENTER}"));
    claw.wait_gone("The older answer.");
    talk(&api, &mut claw, "the newer prompt", "The newer answer.");
    assert_eq!(prompts(&api.requests()[1]), ["the newer prompt"], "a fresh session begins empty");
    claw.command("/session list", "2 of 2");
    claw.wait_for("the older prompt");
    claw.send("older");
    claw.wait_for("1 of 2");
    claw.send(ENTER);
    claw.wait_for("The older answer.");
    claw.wait_gone("The newer answer.");
    talk(&api, &mut claw, "on", "On with the older one.");
    assert_eq!(prompts(&api.requests()[2]), ["the older prompt", "on"]);
}

#[test]
fn resume_opens_the_session_that_was_used_last() {
    let api = MockApi::start();
    let mut claw = open(&api);
    talk(&api, &mut claw, "one", "Answer one.");
    claw.send(format!("/clear {ENTER}"));
    claw.wait_gone("Answer one.");
    talk(&api, &mut claw, "two", "Answer two.");
    claw.send([CTRL_C, CTRL_C].concat());
    assert_eq!(claw.wait_back(), 0);
    let mut claw = claw.again().arg("--resume").start();
    claw.wait_for("Answer two.");
    claw.wait_ready();
    // Prompts of earlier runs can be recalled.
    claw.send(claw_tests::story::UP);
    claw.wait_for("❯ two");
    claw.send(CTRL_C);
    claw.wait_for("put aside");
    talk(&api, &mut claw, "three", "Answer three.");
    assert_eq!(prompts(&api.requests()[2]), ["two", "three"]);
}

#[test]
fn compaction_tells_its_numbers_and_lasts_beyond_a_restart() {
    let api = MockApi::start();
    let mut claw = open(&api);
    claw.command("/compact", "Nothing to compact");
    claw.wait_ready();
    for number in 1..=4 {
        let answer = format!("Answer {number}, {}.", "which is long ".repeat(40));
        api.push(MessagesStream::say(&answer));
        claw.say(&format!("prompt {number}"));
        api.wait_for_requests(number);
        claw.wait_for(&format!("Answer {number},"));
        claw.wait_ready();
    }
    claw.command("/compact", "messages became a summary");
    claw.wait_ready();
    let screen = claw.text();
    let told = screen.lines().find(|line| line.contains("became a summary")).expect("just seen");
    let numbers: Vec<u64> = told
        .split(|c: char| !(c.is_ascii_digit() || c == ','))
        .filter_map(|word| word.replace(',', "").parse().ok())
        .collect();
    let [removed, before, after, ..] = numbers[..] else { panic!("three numbers in {told}") };
    assert!(removed >= 4 && after < before && after > 0, "{told}");

    api.push(MessagesStream::say("After compaction."));
    claw.say("next");
    claw.wait_for("After compaction.");
    claw.wait_ready();
    let compacted = prompts(&api.requests()[4]);
    assert!(compacted.iter().any(|prompt| prompt == "next"));
    assert!(!compacted.iter().any(|prompt| prompt == "prompt 1"), "{compacted:?}");
    claw.send([CTRL_C, CTRL_C].concat());
    assert_eq!(claw.wait_back(), 0);

    let mut claw = claw.again().arg("--resume").start();
    claw.wait_for("After compaction.");
    claw.wait_ready();
    api.push(MessagesStream::say("The same after a restart."));
    claw.say("again");
    claw.wait_for("The same after a restart.");
    let resumed = prompts(&api.requests()[5]);
    assert_eq!(resumed[..compacted.len()], compacted[..]);
    assert_eq!(resumed.last().map(String::as_str), Some("again"));
}

#[test]
fn a_list_that_is_closed_changes_nothing() {
    let api = MockApi::start();
    let mut claw = open(&api);
    talk(&api, &mut claw, "one", "Answer one.");
    claw.command("/session list", "1 of 1");
    claw.send(DOWN);
    claw.send(claw_tests::story::ESC);
    claw.wait_gone("1 of 1");
    talk(&api, &mut claw, "two", "Answer two.");
    assert_eq!(prompts(&api.requests()[1]), ["one", "two"]);
}

#[test]
fn after_a_kill_with_a_question_open_the_session_goes_on_validly() {
    let api = MockApi::start();
    let call = MessagesStream::new().tool_use("toolu_1", "bash", r#"{"command":"touch marker"}"#);
    api.push(call.stop("tool_use", 9).reply());
    let mut claw = open(&api);
    claw.say("go");
    claw.wait_for_dialog();
    claw.signal(Signal::KILL);
    claw.wait_back();
    let mut claw = claw.again().arg("--resume").start();
    claw.wait_ready();
    claw.wait_for("touch marker");
    talk(&api, &mut claw, "on", "On we go.");
    let requests = api.requests();
    let result = claw_tests::story::tool_result(&requests[1], "toolu_1");
    assert!(result.is_some_and(|(_, is_error)| is_error), "each call has a result");
    assert_eq!(prompts(&requests[1]), ["go", "on"]);
    assert!(!claw.workspace().join("marker").exists());
}

#[test]
fn a_torn_session_file_opens_with_everything_that_is_whole_and_says_so() {
    let api = MockApi::start();
    let mut claw = open(&api);
    talk(&api, &mut claw, "one", "Answer one.");
    claw.send([CTRL_C, CTRL_C].concat());
    claw.wait_back();
    let (path, text) = claw.session_files().remove(0);
    let torn = format!("{text}{{\"type\":\"message\",\"seq\":2,\"mess");
    std::fs::write(&path, &torn).unwrap();
    let mut claw = claw.again().arg("--resume").start();
    claw.wait_ready();
    claw.wait_for("Answer one.");
    claw.wait_for("skipped");
    talk(&api, &mut claw, "two", "Answer two.");
    claw.send([CTRL_C, CTRL_C].concat());
    claw.wait_back();
    // Nothing that was in the file is gone, and what was added is whole.
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(&torn));
    let claw = claw.again().arg("--resume").start();
    claw.wait_for("Answer two.");
}

#[test]
fn a_prompt_typed_right_behind_clear_begins_the_fresh_session() {
    let api = MockApi::start();
    let mut claw = open(&api);
    talk(&api, &mut claw, "one", "Answer one.");
    api.push(MessagesStream::say("Answer two."));
    claw.send(format!("/clear {ENTER}two{ENTER}"));
    claw.wait_for("Answer two.");
    claw.wait_ready();
    claw.wait_for("> two");
    assert!(!claw.text().contains("Answer one."), "{}", claw.text());
    assert_eq!(prompts(&api.requests()[1]), ["two"]);
}

#[test]
fn a_session_goes_on_without_a_screen() {
    let api = MockApi::start();
    let mut claw = open(&api);
    talk(&api, &mut claw, "one", "Answer one.");
    claw.send([CTRL_C, CTRL_C].concat());
    claw.wait_back();
    api.push(MessagesStream::say("Answer two."));
    let output = claw.again().run_without_terminal(&["-p", "two", "--resume"], "");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(prompts(&api.requests()[1]), ["one", "two"]);
    let claw = claw.again().arg("--resume").start();
    claw.wait_for("Answer two.");
}
