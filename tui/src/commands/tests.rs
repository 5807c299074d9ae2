use std::collections::HashSet;

use super::*;

fn action(line: &str) -> CommandAction {
    match parse(line) {
        Parsed::Command { action, .. } => action,
        other => panic!("{line:?} is no command: {other:?}"),
    }
}

fn refusal(line: &str) -> String {
    match parse(line) {
        Parsed::Refused(message) => message,
        other => panic!("{line:?} is not refused: {other:?}"),
    }
}

fn prompt(line: &str) -> String {
    match parse(line) {
        Parsed::Prompt(text) => text,
        other => panic!("{line:?} is no prompt: {other:?}"),
    }
}

#[test]
fn every_command_line_means_its_action() {
    use CommandAction as A;
    let some = |text: &str| Some(text.to_owned());
    for (line, expected) in [
        ("/help", A::Help),
        ("/?", A::Help),
        ("/status", A::Status),
        ("/model", A::Model(None)),
        ("/model  sonnet ", A::Model(some("sonnet"))),
        ("/permissions", A::Permissions(None)),
        ("/permissions read-only", A::Permissions(Some(PermissionMode::ReadOnly))),
        ("/mode prompt", A::Permissions(Some(PermissionMode::Prompt))),
        ("/backend", A::Backend(None)),
        ("/backend demo", A::Backend(some("demo"))),
        ("/compact", A::Compact),
        ("/clear", A::Clear),
        ("/clear --confirm", A::Clear),
        ("/session", A::SessionList),
        ("/session list", A::SessionList),
        ("/sessions", A::SessionList),
        ("/session fork", A::SessionFork(None)),
        ("/session   fork  try two", A::SessionFork(some("try two"))),
        ("/fork b", A::SessionFork(some("b"))),
        ("/session switch latest", A::SessionSwitch("latest".into())),
        ("/resume", A::Resume(None)),
        ("/resume last", A::Resume(some("last"))),
        ("/export", A::Export(None)),
        ("/export a b.md", A::Export(Some("a b.md".into()))),
        ("/cost", A::Cost),
        ("/context", A::Context),
        ("/tokens", A::Context),
        ("/config", A::Config),
        ("/history", A::History(20)),
        ("/history 3", A::History(3)),
        ("/retry", A::Retry),
        ("/stop", A::Stop),
        ("/copy", A::Copy),
        ("/thinking", A::Thinking),
        ("/details", A::Details),
        ("/theme", A::Theme(None)),
        ("/theme light", A::Theme(some("light"))),
        ("/version", A::Version),
        ("/exit", A::Exit),
        ("/QUIT", A::Exit),
        ("  /exit  ", A::Exit),
    ] {
        assert_eq!(action(line), expected, "{line:?}");
    }
}

#[test]
fn every_row_is_reachable_by_each_of_its_names() {
    for spec in COMMANDS {
        for name in std::iter::once(&spec.name).chain(spec.aliases) {
            let argument = match spec.argument {
                Argument::Required(..) => " x",
                _ => "",
            };
            match parse(&format!("/{name}{argument}")) {
                Parsed::Command { spec: found, .. } => assert_eq!(found.name, spec.name),
                other => panic!("/{name}: {other:?}"),
            }
        }
    }
}

#[test]
fn names_are_unique() {
    let mut seen = HashSet::new();
    for spec in COMMANDS {
        for name in std::iter::once(&spec.name).chain(spec.aliases) {
            assert!(seen.insert(*name), "/{name} is there twice");
        }
    }
}

#[test]
fn unknown_commands_get_a_message_with_the_nearest_name() {
    assert_eq!(refusal("/foo"), "unknown command /foo; did you mean /fork? /help lists them");
    assert_eq!(refusal("/stats"), "unknown command /stats; did you mean /status? /help lists them");
    assert_eq!(
        refusal("/zzzzzzzz"),
        "unknown command /zzzzzzzz; /help lists them, // begins a prompt with a slash"
    );
    // Half the letters of another word are not a slip.
    assert!(!refusal("/nonsense").contains("did you mean"));
}

#[test]
fn wrong_arguments_are_refused_with_what_to_do_instead() {
    for (line, part) in [
        ("/permissions everything", "one of read-only, workspace-write"),
        ("/session switch", "/session switch needs a session: /session switch <session>"),
        (
            "/session frok",
            "unknown command /session frok; /session takes one of: list, fork, switch",
        ),
        ("/compact now", "/compact takes no argument"),
        ("/history many", "a whole number above 0"),
        ("/history 0", "a whole number above 0"),
        ("/", "a command name follows the slash"),
        ("/ help", "a command name follows the slash"),
    ] {
        let message = refusal(line);
        assert!(message.contains(part), "{line:?} says {message:?}");
    }
}

#[test]
fn prompts_that_begin_with_a_slash_can_be_sent() {
    assert_eq!(prompt("/usr/bin/x is broken"), "/usr/bin/x is broken");
    assert_eq!(prompt("//help is a command"), "/help is a command");
    assert_eq!(prompt("what does /help do"), "what does /help do");
    assert_eq!(prompt("  indented"), "  indented");
}

#[test]
fn help_lists_every_row_with_its_usage() {
    let help = help_markdown();
    for spec in COMMANDS {
        assert!(help.contains(&format!("`{}`", spec.usage())), "{} is missing", spec.name);
        assert!(help.contains(spec.help));
    }
}

#[test]
fn the_readme_shows_the_tables() {
    let readme = include_str!("../../../README.md");
    for (name, table) in
        [("commands", help_markdown()), ("keys", crate::keymap::Keymap::default().help_markdown())]
    {
        let begin = format!("<!-- {name} -->\n");
        let end = format!("<!-- /{name} -->");
        let shown = readme
            .split_once(&begin)
            .and_then(|(_, rest)| rest.split_once(&end))
            .map(|(shown, _)| shown.trim());
        assert!(
            shown == Some(table.trim()),
            "README.md must have this between {begin}and {end}:\n\n{table}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn any_line_is_decided_without_a_panic(line in "/?/?[a-z? \\n\u{e9}\u{1f600}]{0,20}") {
        let _ = parse(&line);
    }
}
