use super::*;
use crate::testing::{fixture, fixtures};

fn screen(name: &str) -> String {
    fixture(&format!("screens/{name}.txt"))
}

fn dialog(name: &str) -> Dialog {
    Dialog::on_screen(&screen(name)).unwrap_or_else(|| panic!("{name} shows a dialog"))
}

#[test]
fn each_recorded_dialog_is_known_by_its_structure() {
    use DialogKind::{ApiKey, Bypass, Login, Permission, Question, Settings, Trust};
    let table: [(&str, DialogKind, &str, usize); 15] = [
        ("trust-dialog-2.1.332", Trust, "Accessing workspace:", 2),
        ("trust-dialog-2.1.197", Trust, "Accessing workspace:", 2),
        ("trust-dialog-long-path-2.1.332", Trust, "Accessing workspace:", 2),
        ("trust-dialog-long-path-2.1.197", Trust, "Accessing workspace:", 2),
        ("api-key-dialog-2.1.332", ApiKey, "Detected a custom API key in your environment", 2),
        ("api-key-dialog-2.1.197", ApiKey, "Detected a custom API key in your environment", 2),
        (
            "bypass-dialog-2.1.332",
            Bypass,
            "WARNING: Claude Code running in Bypass Permissions mode",
            2,
        ),
        (
            "bypass-dialog-2.1.197",
            Bypass,
            "WARNING: Claude Code running in Bypass Permissions mode",
            2,
        ),
        ("settings-warning-2.1.332", Settings, "Settings Warning", 3),
        ("settings-warning-2.1.197", Settings, "Settings Warning", 3),
        ("login-chooser-2.1.332", Login, "Login", 3),
        ("login-chooser-2.1.197", Login, "Login", 3),
        ("permission-dialog-bash", Permission, "Bash command", 4),
        ("permission-dialog-after-ask", Permission, "Bash command", 2),
        ("exit-plan-mode", Question, "Exit plan mode?", 2),
    ];
    for (name, kind, title, entries) in table {
        let dialog = dialog(name);
        assert_eq!((dialog.kind, dialog.title.as_str()), (kind, title), "{name}");
        assert_eq!(dialog.entries.len(), entries, "{name}: {:?}", dialog.entries);
        assert_eq!(dialog.entries.iter().filter(|entry| entry.selected).count(), 1, "{name}");
    }
    let asked = dialog("ask-user-question");
    assert_eq!(asked.kind, Question);
    assert!(asked.text.contains("Which colour?") && asked.text.contains("Blue"));
}

#[test]
fn a_conversation_is_no_dialog_whatever_its_words() {
    for name in ["interrupted", "ready-2.1.332", "ready-2.1.197"] {
        assert_eq!(Dialog::on_screen(&screen(name)), None, "{name}");
    }
    let box_below = "\n────────────────────\n❯\n────────────────────\n  ? for shortcuts\n";
    let typed = "\n────────────────────\n❯ 1. Yes, I trust this folder\n────────────────────\n  ? for shortcuts\n";
    for quoted in ["trust-dialog-2.1.332", "api-key-dialog-2.1.197", "login-chooser-2.1.332"] {
        for below in [box_below, typed] {
            let shown = format!("● Here is what it asks:\n{}{below}", screen(quoted));
            assert_eq!(Dialog::on_screen(&shown), None, "{shown}");
        }
    }
    for words in
        ["", "\n\n", "Do you trust this folder? Enter to confirm", "trust\n❯", "❯ trust me"]
    {
        assert_eq!(Dialog::on_screen(words), None, "{words:?}");
    }
}

#[test]
fn an_unknown_dialog_is_told_with_its_text() {
    let text = "  Choose the text style\n\n  ❯ 1. Dark mode\n    2. Light mode\n\n  Enter to confirm · Esc to cancel\n";
    let dialog = Dialog::on_screen(text).unwrap();
    assert_eq!(
        (dialog.kind, dialog.title.as_str()),
        (DialogKind::Unknown, "Choose the text style")
    );
    assert!(dialog.text.starts_with("Choose the text style\n\n❯ 1. Dark mode\n  2. Light mode"));
}

/// Moves the mark to the next entry, as the CLI does.
fn down(screen: &str) -> String {
    let lines: Vec<&str> = screen.lines().collect();
    let at = lines.iter().position(|line| line.trim_start().starts_with(MARK)).unwrap();
    let next = if lines[at + 1].trim().is_empty() { at - 1 } else { at + 1 };
    let moved = |(n, line): (usize, &&str)| {
        if n == at {
            line.replace(MARK, " ")
        } else if n == next {
            let (before, words) = line.split_at(depth(line) - 2);
            format!("{before}{MARK}{}", &words[1..])
        } else {
            (*line).to_owned()
        }
    };
    lines.iter().enumerate().map(moved).collect::<Vec<_>>().join("\n")
}

/// The keys until the dialog is left or confirmed, and the line that was confirmed.
fn answered(mut screen: String, consent: &Consent) -> (Vec<NextKey>, Option<String>) {
    let (mut answering, mut keys) = (Answering::default(), Vec::new());
    loop {
        let dialog = Dialog::on_screen(&screen).unwrap();
        let key = answering.next_key(&dialog, consent);
        keys.push(key);
        match key {
            NextKey::Down => screen = down(&screen),
            NextKey::Enter => return (keys, dialog.selected().map(|entry| entry.label.clone())),
            NextKey::Leave => return (keys, None),
        }
    }
}

const PROJECT: Consent = Consent { folder: None, api_key: None };

#[test]
fn trust_is_answered_by_the_marked_line_on_both_versions() {
    let consent = Consent { folder: Some(Path::new("/home/user/project")), ..PROJECT };
    let yes = Some("Yes, I trust this folder".to_owned());
    let new = answered(screen("trust-dialog-2.1.332"), &consent);
    assert_eq!(new, (vec![NextKey::Down, NextKey::Enter], yes.clone()));
    let old = answered(screen("trust-dialog-2.1.197"), &consent);
    assert_eq!(old, (vec![NextKey::Enter], yes));
    let long = "/home/user/project/pr/a folder with a rather long name 0/a folder with a rather long name 1/a folder with a rather long name 2/a folder with a rather long name 3/a folder with a rather long name 4";
    let consent = Consent { folder: Some(Path::new(long)), ..PROJECT };
    assert!(answered(screen("trust-dialog-long-path-2.1.332"), &consent).1.is_some());
}

#[test]
fn a_key_is_answered_only_when_it_is_the_configured_one() {
    let consent = Consent { api_key: Some("sk-x-abcdqrstuvwxyz0123456789"), ..PROJECT };
    for version in ["332", "197"] {
        let shown = screen(&format!("api-key-dialog-2.1.{version}"));
        let (keys, line) = answered(shown.clone(), &consent);
        assert_eq!((keys.last(), line.as_deref()), (Some(&NextKey::Enter), Some("Yes")));
        let other = Consent { api_key: Some("another-key-altogether"), ..PROJECT };
        assert_eq!(answered(shown, &other).0, [NextKey::Leave]);
    }
}

#[test]
fn nothing_else_is_ever_answered() {
    let consent = Consent {
        folder: Some(Path::new("/home/user/project")),
        api_key: Some("qrstuvwxyz0123456789"),
    };
    let mut left = 0;
    for entry in std::fs::read_dir(fixtures().join("screens")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.trim_end_matches(".txt");
        let ours = ["trust-dialog-2.1", "api-key-dialog"].iter().any(|own| name.starts_with(own));
        let Some(dialog) = Dialog::on_screen(&screen(name)).filter(|_| !ours) else { continue };
        assert_eq!(Answering::default().next_key(&dialog, &consent), NextKey::Leave, "{name}");
        left += 1;
    }
    assert!(left >= 10, "{left}");
    // Nor is anything without the person's word, or for another folder.
    for consent in [PROJECT, Consent { folder: Some(Path::new("/home/user")), ..PROJECT }] {
        let trust = dialog("trust-dialog-2.1.197");
        assert_eq!(Answering::default().next_key(&trust, &consent), NextKey::Leave);
    }
}

#[test]
fn a_dialog_shown_twice_is_answered_twice_and_one_that_does_not_move_is_given_up() {
    let consent = Consent { folder: Some(Path::new("/home/user/project")), ..PROJECT };
    let (no, mut answering) = (dialog("trust-dialog-2.1.332"), Answering::default());
    let yes = Dialog::on_screen(&down(&screen("trust-dialog-2.1.332"))).unwrap();
    for _ in 0..2 {
        assert_eq!(answering.next_key(&no, &consent), NextKey::Down);
        assert_eq!(answering.next_key(&yes, &consent), NextKey::Enter);
    }
    let keys: Vec<_> = (0..6).map(|_| answering.next_key(&no, &consent)).collect();
    assert_eq!(keys[..4], [NextKey::Down; 4]);
    assert_eq!(keys[4..], [NextKey::Leave; 2], "never a blind Enter");
}

proptest::proptest! {
    #[test]
    fn no_screen_makes_it_panic(lines in proptest::collection::vec("[ ❯1-3.─YesNo·Entrofm]{0,24}", 0..14)) {
        let _ = Dialog::on_screen(&lines.join("\n"));
    }
}
