//! What the person sees before the answer, at any size.

use super::*;

#[test]
fn the_modal_shows_tool_input_mode_level_and_choices() {
    let mut rig = Rig::new();
    let mut asked = request(
        "bash",
        r#"{"description":"run all tests","command":"cargo test \\\n  --workspace","timeout":120}"#,
    );
    asked.reason = Some("`cargo` is not known to be harmless".into());
    let _reply = rig.ask(asked);
    let _other = rig.ask(command("ls"));
    rig.dialog.focus();
    insta::assert_snapshot!(rig.screen().trim_start(), @r#"
    ╭ bash asks for permission · 1 of 2 ───────────────────────────────────────────╮
    │ mode workspace-write · needs danger-full-access                              │
    │ `cargo` is not known to be harmless                                          │
    │ cargo test \                                                                 │
    │   --workspace                                                                │
    │ {                                                                            │
    │   "description": "run all tests",                                            │
    │   "timeout": 120                                                             │
    │ }                                                                            │
    │                                                                              │
    │ › Deny                                                                       │
    │   Deny with a reason…                                                        │
    │   Allow once                                                                 │
    │   Change it in your editor first…                                            │
    │ ↑↓ choose · ←→ others · Enter confirms · Esc denies · letters: draft         │
    ╰──────────────────────────────────────────────────────────────────────────────╯
    "#);
}

#[test]
fn an_edit_shows_its_diff() {
    let mut rig = Rig::new();
    let mut asked = request(
        "edit_file",
        r#"{"path":"src/a.rs","old_string":"let a = 1;","new_string":"let a = 2;"}"#,
    );
    asked.preview = Some("@@ -1 +1 @@\n-let a = 1;\n+let a = 2;\n".into());
    let _reply = rig.ask(asked);
    rig.dialog.focus();
    insta::assert_snapshot!(rig.screen().trim_start(), @r#"
    ╭ edit_file asks for permission ───────────────────────────────────────────────╮
    │ mode workspace-write · needs danger-full-access                              │
    │ {                                                                            │
    │   "path": "src/a.rs"                                                         │
    │ }                                                                            │
    │ @@ -1 +1 @@                                                                  │
    │ -let a = 1;                                                                  │
    │ +let a = 2;                                                                  │
    │                                                                              │
    │ › Deny                                                                       │
    │   Deny with a reason…                                                        │
    │   Allow once                                                                 │
    │   Allow for this session: `cargo test`                                       │
    │   Change it in your editor first…                                            │
    │ ↑↓ choose · Enter confirms · Esc denies · letters go to your draft           │
    ╰──────────────────────────────────────────────────────────────────────────────╯
    "#);
}

#[test]
fn texts_of_several_lines_are_shown_as_lines() {
    let mut rig = Rig::new();
    let input = serde_json::json!({ "language": "python", "code": "import os\nprint(os.name)" });
    let _reply = rig.ask(request("REPL", &input.to_string()));
    assert!(
        rig.dialog.notice(100).unwrap().contains("REPL asks for permission: `import os print(")
    );
    rig.dialog.focus();
    let screen = rig.screen();
    for line in ["\"language\": \"python\"", "│ code:", "│ import os ", "│ print(os.name) "] {
        assert!(screen.contains(line), "{line} is missing:\n{screen}");
    }
}

#[test]
fn input_that_is_no_object_is_shown_as_it_is() {
    for (input, expected) in [("not json", "not json"), ("[1, 2]", "[1, 2]"), ("{}", "(no input)")]
    {
        let mut rig = Rig::new();
        let _reply = rig.ask(request("tool", input));
        rig.dialog.focus();
        assert!(rig.screen().contains(expected));
    }
}

#[test]
fn allow_is_out_of_reach_until_the_end_of_the_input_was_shown() {
    let mut rig = Rig::new();
    let long: Vec<String> = (1..=40).map(|n| format!("echo {n}")).collect();
    let (_, reply) = rig.ask(command(&long.join("\n")));
    rig.dialog.focus();
    rig.keys(&[KeyCode::Down, KeyCode::Down]);
    insta::assert_snapshot!(rig.screen(), @"
    ╭ bash asks for permission ────────────────────────────────────────────────────╮
    │ mode workspace-write · needs danger-full-access                              │
    │ echo 1                                                                       │
    │ echo 2                                                                       │
    │ echo 3                                                                       │
    │ echo 4                                                                       │
    │ echo 5                                                                       │
    │ echo 6                                                                       │
    │ echo 7                                                                       │
    │ echo 8                                                                       │
    │ echo 9                                                                       │
    │ echo 10                                                                      │
    │ echo 11                                                                      │
    │ echo 12                                                                      │
    │ echo 13                                                                      │
    │ echo 14                                                                      │
    │ ↓ 26 more lines (PageDown, End)                                              │
    │   Deny                                                                       │
    │   Deny with a reason…                                                        │
    │ › Allow once (read to the end first)                                         │
    │   Allow for this session: `cargo test` (read to the end first)               │
    │   Change it in your editor first…                                            │
    │ PageDown or End shows the rest; then it can be allowed                       │
    ╰──────────────────────────────────────────────────────────────────────────────╯
    ");
    assert_eq!(rig.key(KeyCode::Enter), DialogOutcome::Consumed);
    assert!(rig.dialog.is_waiting());
    rig.key(KeyCode::PageDown);
    rig.screen();
    assert_eq!(rig.key(KeyCode::Enter), DialogOutcome::Consumed, "one page is not all");
    rig.key(KeyCode::End);
    assert!(rig.screen().contains("echo 40"));
    rig.key(KeyCode::Enter);
    assert_eq!(decided(reply), Some(PermissionPromptDecision::AllowOnce));
}

#[test]
fn hidden_characters_are_made_visible() {
    let mut rig = Rig::new();
    let _reply = rig.ask(command("echo \u{202e}gpj.exe\u{1b}[8m\u{200b}; rm x"));
    rig.dialog.focus();
    assert!(rig.screen().contains("echo <U+202E>gpj.exe␛[8m<U+200B>; rm x"));
    rig.dialog.key(rig.now, &KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE));
    assert!(rig.dialog.notice(120).unwrap().contains("echo <U+202E>gpj.exe␛[8m<U+200B>; rm x"));
}

#[test]
fn a_tiny_terminal_shows_tool_and_choice_and_allows_only_what_was_shown() {
    let mut rig = Rig::new();
    rig.size = (20, 5);
    let (_, reply) = rig.ask(command("cargo test --workspace --all-targets"));
    rig.dialog.focus();
    insta::assert_snapshot!(rig.screen(), @r"
    bash asks
    cargo test --workspa
    ce --all-targets

    › Deny            ↑↓
    ");
    rig.size = (20, 2);
    rig.dialog.seen_end = false;
    rig.keys(&[KeyCode::Down, KeyCode::Down]);
    insta::assert_snapshot!(rig.screen(), @r"
    bash asks
    › Allow once (rea ↑↓
    ");
    assert_eq!(rig.key(KeyCode::Enter), DialogOutcome::Consumed);
    assert_eq!(decided(reply), None);
}

#[test]
fn every_size_shows_the_choice_and_draws_only_in_its_area() {
    let mut asked = command(&"echo 日本語 and more\n".repeat(30));
    asked.reason = Some("a reason that takes a row of its own".into());
    for (width, height) in [
        (20, 5),
        (20, 6),
        (39, 12),
        (40, 10),
        (40, 11),
        (60, 12),
        (80, 24),
        (200, 50),
        (1, 1),
        (3, 2),
    ] {
        let mut rig = Rig::new();
        let _reply = rig.ask(asked.clone());
        rig.dialog.focus();
        let screen = Rect::new(0, 0, width + 4, height + 4);
        let area = Rect::new(2, 2, width, height);
        let mut buf = Buffer::empty(screen);
        for cell in &mut buf.content {
            cell.set_symbol("#");
        }
        rig.dialog.draw(rig.now, area, &mut buf, &Theme::plain());
        for y in 0..screen.height {
            for x in 0..screen.width {
                let inside = area.contains(Position::new(x, y));
                assert!(inside || buf[(x, y)].symbol() == "#", "{width}x{height} at {x},{y}");
            }
        }
        if width < 20 {
            continue;
        }
        let text = shown(&buf, None);
        assert!(text.contains("› Deny"), "{width}x{height}:\n{text}");
        assert!(text.contains("echo"), "{width}x{height}: some input is visible:\n{text}");
        assert_eq!(rig.dialog.seen_end, height == 50, "all of it fits only there");
    }
}
