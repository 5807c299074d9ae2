//! Questions that need more than yes or no, changed inputs, and several requests at a time.

use claw_runtime::permissions::{Question, QuestionAnswer, QuestionOption, RequestKind};

use super::*;

fn question(text: &str, labels: &[&str], multi_select: bool) -> Question {
    let option = |label: &&str| QuestionOption {
        label: (*label).to_owned(),
        description: format!("about {}", label.to_lowercase()),
    };
    Question {
        question: text.to_owned(),
        header: String::new(),
        options: labels.iter().map(option).collect(),
        multi_select,
    }
}

fn questions(questions: Vec<Question>) -> PermissionRequest {
    PermissionRequest {
        kind: RequestKind::Questions(questions),
        ..request("AskUserQuestion", "{}")
    }
}

fn answers(pairs: &[(&str, &str)]) -> PermissionPromptDecision {
    let answer = |(question, answer): &(&str, &str)| QuestionAnswer {
        question: (*question).to_owned(),
        answer: (*answer).to_owned(),
    };
    PermissionPromptDecision::Answers(pairs.iter().map(answer).collect())
}

fn walk_to(rig: &mut Rig, label: &str) {
    for _ in 0..12 {
        if rig.screen().contains(&format!("› {label}")) {
            return;
        }
        rig.key(KeyCode::Down);
    }
    panic!("no {label}:\n{}", rig.screen());
}

#[test]
fn one_of_the_answers_is_chosen_and_nothing_is_chosen_by_a_stray_enter() {
    let colours = || questions(vec![question("Which colour?", &["Red", "Blue"], false)]);
    let mut rig = Rig::new();
    let (_, reply) = rig.ask(colours());
    rig.dialog.focus();
    let screen = rig.screen();
    for line in ["A question for you", "Which colour?", "Blue: about blue", "› Do not answer"] {
        assert!(screen.contains(line), "{line} is missing:\n{screen}");
    }
    assert!(!screen.contains("Allow"), "{screen}");
    walk_to(&mut rig, "Blue");
    rig.key(KeyCode::Enter);
    assert_eq!(decided(reply), Some(answers(&[("Which colour?", "Blue")])));

    let mut rig = Rig::new();
    let (_, reply) = rig.ask(colours());
    rig.dialog.focus();
    rig.screen();
    rig.key(KeyCode::Enter);
    assert_eq!(decided(reply), Some(DENY));
}

#[test]
fn several_questions_come_one_after_the_other_and_are_answered_together() {
    let mut rig = Rig::new();
    let (_, mut reply) = rig.ask(questions(vec![
        question("Which parts?", &["Wheels", "Doors", "Roof"], true),
        question("How fast?", &["Slowly", "At once"], false),
    ]));
    rig.dialog.focus();
    assert!(rig.screen().contains("question 1 of 2"));
    // Nothing is marked yet.
    walk_to(&mut rig, "Go on with what is marked");
    assert_eq!(rig.key(KeyCode::Enter), DialogOutcome::Consumed);
    rig.keys(&[KeyCode::Up; 9]);
    for label in ["[ ] Roof", "[ ] Wheels"] {
        rig.keys(&[KeyCode::Up; 9]);
        walk_to(&mut rig, label);
        rig.key(KeyCode::Enter);
    }
    assert!(rig.screen().contains("[x] Roof") && rig.screen().contains("[ ] Doors"));
    walk_to(&mut rig, "Go on with what is marked");
    rig.key(KeyCode::Enter);
    assert!(reply.try_recv().is_err(), "one is still open");
    // The Enter of the first one does not answer the second.
    rig.key(KeyCode::Enter);
    assert!(rig.dialog.is_waiting());
    rig.wait(1_000);
    let screen = rig.screen();
    assert!(screen.contains("How fast?") && screen.contains("question 2 of 2"), "{screen}");
    walk_to(&mut rig, "Something else…");
    rig.key(KeyCode::Enter);
    rig.type_text("tomorrow");
    rig.key(KeyCode::Enter);
    let expected = answers(&[("Which parts?", "Wheels, Roof"), ("How fast?", "tomorrow")]);
    assert_eq!(decided(reply), Some(expected));
}

#[test]
fn a_plan_is_read_to_its_end_and_approved_as_it_is_or_as_it_was_changed() {
    let plan = || PermissionRequest {
        kind: RequestKind::Plan { text: "1. Look\n2. Build\n".into() },
        ..request("ExitPlanMode", "{}")
    };
    let approve = |text: &str| PermissionPromptDecision::ApprovePlan { text: text.into() };
    let mut rig = Rig::new();
    let (_, reply) = rig.ask(plan());
    rig.dialog.focus();
    let screen = rig.screen();
    for line in ["A plan for your approval", "2. Build", "› Keep planning"] {
        assert!(screen.contains(line), "{line} is missing:\n{screen}");
    }
    walk_to(&mut rig, "Approve this plan");
    rig.key(KeyCode::Enter);
    assert_eq!(decided(reply), Some(approve("1. Look\n2. Build\n")));

    let mut rig = Rig::new();
    let (id, reply) = rig.ask(plan());
    rig.dialog.focus();
    walk_to(&mut rig, "Change it in your editor first…");
    let edit = DialogOutcome::Edit(id, "1. Look\n2. Build\n".into());
    assert_eq!(rig.key(KeyCode::Enter), edit);
    assert!(rig.dialog.edited(id, " \n", rig.now).is_err());
    rig.dialog.edited(id, "1. Look twice\n", rig.now).unwrap();
    walk_to(&mut rig, "Approve the plan as you changed it");
    rig.wait(1_000);
    rig.key(KeyCode::Enter);
    assert_eq!(decided(reply), Some(approve("1. Look twice")));

    let mut rig = Rig::new();
    let (_, reply) = rig.ask(plan());
    rig.dialog.focus();
    walk_to(&mut rig, "Keep planning, with a message…");
    rig.key(KeyCode::Enter);
    rig.type_text("shorter");
    assert!(rig.screen().contains("› Message: shorter"));
    rig.key(KeyCode::Enter);
    let expected = PermissionPromptDecision::Deny { reason: Some("shorter".into()) };
    assert_eq!(decided(reply), Some(expected));
}

#[test]
fn a_changed_command_is_shown_again_before_it_may_run() {
    let mut rig = Rig::new();
    let (id, reply) = rig.ask(command("rm -r build"));
    rig.dialog.focus();
    walk_to(&mut rig, "Change it in your editor first…");
    assert_eq!(rig.key(KeyCode::Enter), DialogOutcome::Edit(id, "rm -r build".into()));
    rig.dialog.edited(id, "rm -r build/tmp\n", rig.now).unwrap();
    let screen = rig.screen();
    assert!(screen.contains("rm -r build/tmp") && screen.contains("› Deny"), "{screen}");
    assert!(!screen.contains("for this session"), "that was about another command:\n{screen}");
    walk_to(&mut rig, "Allow once, as you changed it");
    rig.key(KeyCode::Enter);
    let input = r#"{"command":"rm -r build/tmp"}"#.to_owned();
    assert_eq!(decided(reply), Some(PermissionPromptDecision::AllowInput { input }));
}

#[test]
fn what_was_changed_too_late_or_to_nonsense_changes_nothing() {
    let mut rig = Rig::new();
    let (id, reply) = rig.ask(request("Write", r#"{"file_path":"a","content":"x"}"#));
    rig.dialog.focus();
    assert!(rig.dialog.edited(id, "no JSON", rig.now).is_err());
    assert!(!rig.screen().contains("as you changed it"));
    rig.dialog.retire(id, rig.now);
    assert!(rig.dialog.edited(id, "{}", rig.now).is_err());
    assert_eq!(decided(reply), None);
}

#[test]
fn the_arrows_jump_between_those_that_wait_by_age() {
    let mut rig = Rig::new();
    let (_, mut first) = rig.ask(command("first"));
    let (_, second) = rig.ask(command("second"));
    let (_, mut third) = rig.ask(command("third"));
    rig.dialog.focus();
    assert!(rig.screen().contains("1 of 3"));
    walk_to(&mut rig, "Allow once");
    rig.key(KeyCode::Right);
    let screen = rig.screen();
    assert!(screen.contains("second") && screen.contains("2 of 3"), "{screen}");
    assert!(screen.contains("› Deny"), "Deny is selected again:\n{screen}");
    rig.key(KeyCode::Left);
    rig.key(KeyCode::Left);
    let screen = rig.screen();
    assert!(screen.contains("third") && screen.contains("3 of 3"), "{screen}");
    rig.keys(&[KeyCode::Right, KeyCode::Right]);
    rig.wait(1_000);
    walk_to(&mut rig, "Allow once");
    rig.key(KeyCode::Enter);
    assert_eq!(decided(second), Some(PermissionPromptDecision::AllowOnce));
    assert!(first.try_recv().is_err() && third.try_recv().is_err());
}

#[test]
fn it_says_how_long_a_request_has_waited() {
    let mut rig = Rig::new();
    let _reply = rig.ask(command("ls"));
    rig.dialog.focus();
    rig.wait(9_000);
    assert!(!rig.screen().contains("waiting for"));
    rig.wait(66_000);
    assert!(rig.screen().contains("waiting for 75 s"));
}

#[test]
fn a_question_breaks_between_words_and_a_command_anywhere() {
    let words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";
    let mut rig = Rig::new();
    let _reply = rig.ask(questions(vec![question(words, &["Yes"], false)]));
    rig.dialog.focus();
    let screen = rig.screen();
    assert!(screen.contains("twelve thirteen  ") && screen.contains("│ fourteen "), "{screen}");
    let mut rig = Rig::new();
    let _reply = rig.ask(command(words));
    rig.dialog.focus();
    assert!(rig.screen().contains("│ teen "), "{}", rig.screen());
}
