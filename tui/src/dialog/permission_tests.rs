//! Requests and keys in; screens, drafts and answers out.

use claw_runtime::permissions::{PermissionLevel, PermissionMode};
use claw_runtime::tools::Grant;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tokio::sync::oneshot;

use super::*;
use crate::composer::{Composer, ComposerOutcome};
use crate::theme::Theme;

type Reply = oneshot::Receiver<PermissionPromptDecision>;

fn request(tool: &str, input: &str) -> PermissionRequest {
    PermissionRequest {
        id: RequestId::next(),
        tool_use_id: "use".into(),
        tool_name: tool.into(),
        input: input.into(),
        current_mode: PermissionMode::WorkspaceWrite,
        required: PermissionLevel::DangerFullAccess,
        reason: None,
        preview: None,
        grant: Grant { key: "bash:cargo test".into(), words: "`cargo test`".into() },
    }
}

fn command(text: &str) -> PermissionRequest {
    request("bash", &serde_json::json!({ "command": text }).to_string())
}

/// The dialog in front of a composer, as the application puts them.
struct Rig {
    dialog: PermissionDialog,
    composer: Composer,
    now: Instant,
    size: (u16, u16),
    submitted: Vec<String>,
}

impl Rig {
    fn new() -> Self {
        Self {
            dialog: PermissionDialog::default(),
            composer: Composer::default(),
            now: Instant::now(),
            size: (80, 24),
            submitted: Vec::new(),
        }
    }

    fn ask(&mut self, request: PermissionRequest) -> (RequestId, Reply) {
        let (reply, answer) = PermissionReply::channel();
        let id = request.id;
        self.dialog.push(request, reply, self.now);
        (id, answer)
    }

    fn wait(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        self.dialog.tick(self.now);
    }

    fn event(&mut self, event: &Event) -> DialogOutcome {
        let outcome = self.dialog.handle(self.now, event);
        if outcome == DialogOutcome::Ignored
            && let ComposerOutcome::Submit(text) = self.composer.handle(self.now, event)
        {
            self.submitted.push(text);
        }
        outcome
    }

    fn key(&mut self, code: KeyCode) -> DialogOutcome {
        self.event(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn keys(&mut self, codes: &[KeyCode]) -> DialogOutcome {
        codes.iter().map(|code| self.key(*code)).last().unwrap_or(DialogOutcome::Ignored)
    }

    fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            self.key(KeyCode::Char(c));
        }
    }

    fn screen(&mut self) -> String {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut buf = Buffer::empty(area);
        let caret = self.dialog.draw(area, &mut buf, &Theme::plain());
        super::super::picker::tests::shown(&buf, caret)
    }
}

fn decided(mut reply: Reply) -> Option<PermissionPromptDecision> {
    reply.try_recv().ok()
}

const DENY: PermissionPromptDecision = PermissionPromptDecision::Deny { reason: None };

#[test]
fn a_request_first_waits_with_a_notice() {
    let mut rig = Rig::new();
    let _reply = rig.ask(command("cargo test"));
    assert_eq!(
        rig.dialog.notice(80).unwrap(),
        "bash asks for permission: `cargo test` — stop typing, or Tab to answer"
    );
    assert!(!rig.dialog.is_focused());
    assert_eq!(rig.screen().trim(), "", "nothing but the notice is drawn");
    assert_eq!(rig.dialog.notice(30).unwrap(), "bash asks: Tab to answer");
    assert_eq!(rig.dialog.notice(10).unwrap(), "bash asks…");
    let _other = rig.ask(command("ls"));
    assert!(rig.dialog.notice(90).unwrap().contains("(1 of 2)"));
}

#[test]
fn it_takes_the_focus_when_the_person_has_stopped_typing() {
    let mut rig = Rig::new();
    rig.type_text("a");
    rig.wait(100);
    let _reply = rig.ask(command("ls"));
    assert_eq!(rig.dialog.next_deadline(rig.now), Some(rig.now + Duration::from_millis(500)));
    rig.wait(499);
    assert!(!rig.dialog.is_focused());
    rig.wait(1);
    assert!(rig.dialog.is_focused());
    assert_eq!(rig.dialog.next_deadline(rig.now), None);
    assert_eq!(rig.dialog.notice(80), None);
}

#[test]
fn it_waits_a_moment_even_for_a_person_who_does_not_type() {
    let mut rig = Rig::new();
    rig.wait(10_000);
    let _reply = rig.ask(command("ls"));
    rig.wait(299);
    assert!(!rig.dialog.is_focused());
    rig.wait(1);
    assert!(rig.dialog.is_focused());
}

#[test]
fn the_focus_key_takes_it_at_once() {
    let mut rig = Rig::new();
    assert!(!rig.dialog.focus(), "nothing waits");
    rig.type_text("typing");
    let (_, reply) = rig.ask(command("ls"));
    assert!(rig.dialog.focus());
    assert!(matches!(rig.key(KeyCode::Enter), DialogOutcome::Answered(_)));
    assert_eq!(decided(reply), Some(DENY), "Deny is where the focus begins");
}

#[test]
fn keys_typed_ahead_go_to_the_draft_and_never_answer() {
    for typed in ["y", "n", "a", "p", "1", "2", "3", " ", "Y", "é"] {
        let mut rig = Rig::new();
        let (_, reply) = rig.ask(command("touch marker"));
        rig.wait(300);
        assert!(rig.dialog.is_focused());
        rig.screen();
        rig.type_text(typed);
        assert!(!rig.dialog.is_focused(), "{typed:?} gives the focus back");
        assert_eq!(rig.composer.text(), typed);
        rig.key(KeyCode::Enter);
        assert!(!rig.dialog.is_focused());
        rig.wait(599);
        assert!(!rig.dialog.is_focused(), "the wait begins anew");
        rig.wait(1);
        assert!(rig.dialog.is_focused());
        rig.screen();
        rig.keys(&[KeyCode::Down, KeyCode::Down, KeyCode::Enter]);
        assert_eq!(
            decided(reply),
            Some(PermissionPromptDecision::AllowOnce),
            "one deliberate answer afterwards works the first time"
        );
    }
}

#[test]
fn a_person_who_types_through_a_request_answers_nothing_and_loses_nothing() {
    let set: Vec<char> = "ynap 123 quick brown fox".chars().collect();
    for seed in 0..50u64 {
        let mut rig = Rig::new();
        let mut typed = String::new();
        let mut reply = None;
        // A small generator is enough: any spread of keys and of arrival times will do.
        let mut state = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let arrives_after = 1_000 + next(3_000);
        let stops_after = arrives_after + 100 + next(200);
        for at in (0..stops_after).step_by(60) {
            if at >= arrives_after && reply.is_none() {
                reply = Some(rig.ask(command("touch marker")).1);
                assert!(rig.dialog.notice(80).is_some(), "the notice is there at once");
            }
            let c = set[usize::try_from(next(set.len() as u64)).unwrap()];
            typed.push(c);
            rig.key(KeyCode::Char(c));
            rig.wait(60);
            assert!(!rig.dialog.is_focused());
        }
        let reply = reply.unwrap_or_else(|| rig.ask(command("touch marker")).1);
        rig.key(KeyCode::Enter);
        assert_eq!(rig.submitted.concat(), typed.trim_end());
        rig.wait(600);
        assert!(rig.dialog.is_focused() && rig.screen().contains("touch marker"));
        rig.keys(&[KeyCode::Down, KeyCode::Down, KeyCode::Enter]);
        assert_eq!(decided(reply), Some(PermissionPromptDecision::AllowOnce));
    }
}

#[test]
fn typing_in_a_list_counts_as_typing() {
    let mut rig = Rig::new();
    let _reply = rig.ask(command("ls"));
    rig.now += Duration::from_millis(290);
    rig.dialog.note_typed(rig.now);
    rig.wait(599);
    assert!(!rig.dialog.is_focused());
    rig.wait(1);
    assert!(rig.dialog.is_focused());
}

#[test]
fn a_paste_goes_to_the_draft() {
    let mut rig = Rig::new();
    let (_, reply) = rig.ask(command("ls"));
    rig.dialog.focus();
    assert_eq!(rig.event(&Event::Paste("y\ny\n".into())), DialogOutcome::Ignored);
    assert!(!rig.dialog.is_focused());
    assert_eq!(rig.composer.text(), "y\ny\n");
    drop(rig);
    assert_eq!(decided(reply), None, "dropping the dialog answers nothing, which denies");
}

#[test]
fn each_choice_is_answered_by_enter() {
    use PermissionPromptDecision as D;
    for (downs, expected) in
        [(0, DENY), (2, D::AllowOnce), (3, D::AllowForSession), (9, D::AllowForSession)]
    {
        let mut rig = Rig::new();
        let (id, reply) = rig.ask(command("ls"));
        rig.dialog.focus();
        rig.screen();
        for _ in 0..downs {
            rig.key(KeyCode::Down);
        }
        let answer =
            Answer { id, tool_name: "bash".into(), decision: expected.clone(), late: false };
        assert_eq!(rig.key(KeyCode::Enter), DialogOutcome::Answered(answer));
        assert_eq!(decided(reply), Some(expected));
        assert!(!rig.dialog.is_focused() && !rig.dialog.is_waiting());
    }
}

#[test]
fn up_from_deny_stays_on_deny() {
    let mut rig = Rig::new();
    let (_, reply) = rig.ask(command("ls"));
    rig.dialog.focus();
    rig.screen();
    rig.keys(&[KeyCode::Up, KeyCode::Left, KeyCode::BackTab, KeyCode::Enter]);
    assert_eq!(decided(reply), Some(DENY));
}

#[test]
fn esc_denies_once() {
    let mut rig = Rig::new();
    let (_, first) = rig.ask(command("ls"));
    let (_, second) = rig.ask(command("rm x"));
    rig.dialog.focus();
    rig.key(KeyCode::Esc);
    assert_eq!(decided(first), Some(DENY));
    assert_eq!(
        rig.key(KeyCode::Esc),
        DialogOutcome::Consumed,
        "a second Esc at once was not meant for the next"
    );
    rig.wait(300);
    assert!(rig.dialog.is_focused());
    rig.key(KeyCode::Esc);
    assert_eq!(decided(second), Some(DENY));
}

#[test]
fn a_reason_is_typed_in_its_own_field_and_only_enter_confirms_it() {
    let mut rig = Rig::new();
    let (_, reply) = rig.ask(command("ls"));
    rig.dialog.focus();
    rig.keys(&[KeyCode::Down, KeyCode::Enter]);
    rig.type_text("y no");
    rig.keys(&[KeyCode::Backspace, KeyCode::Backspace, KeyCode::Backspace, KeyCode::Backspace]);
    rig.keys(&[KeyCode::Backspace, KeyCode::Backspace, KeyCode::Tab, KeyCode::Up]);
    assert!(rig.dialog.is_waiting(), "Backspace never confirms");
    rig.type_text("use jq");
    insta::assert_snapshot!(rig.screen().trim_start(), @r"
    ╭ bash asks for permission ────────────────────────────────────────────────────╮
    │ mode workspace-write · needs danger-full-access                              │
    │ ls                                                                           │
    │                                                                              │
    │   Deny                                                                       │
    │ › Reason: use jq‸                                                             │
    │   Allow once                                                                 │
    │   Allow for this session: `cargo test`                                       │
    │ Enter denies with this reason · Esc goes back                                │
    ╰──────────────────────────────────────────────────────────────────────────────╯
    ");
    rig.key(KeyCode::Esc);
    assert!(rig.dialog.is_focused() && rig.dialog.is_waiting(), "Esc only leaves the field");
    rig.key(KeyCode::Enter);
    rig.type_text("use jq instead");
    rig.key(KeyCode::Enter);
    let reason = Some("use jq instead".to_owned());
    assert_eq!(decided(reply), Some(PermissionPromptDecision::Deny { reason }));
    assert!(rig.composer.is_empty());
}

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
    │   Allow for this session: `cargo test`                                       │
    │ ↑↓ choose · Enter confirms · Esc denies · letters go to your draft           │
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
    insta::assert_snapshot!(rig.screen(), @r"
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
    │ echo 15                                                                      │
    │ ↓ 25 more lines (PageDown, End)                                              │
    │   Deny                                                                       │
    │   Deny with a reason…                                                        │
    │ › Allow once (read to the end first)                                         │
    │   Allow for this session: `cargo test` (read to the end first)               │
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
fn an_answer_to_one_request_never_serves_the_next() {
    let mut rig = Rig::new();
    let (_, first) = rig.ask(command("one"));
    let (_, second) = rig.ask(command("two"));
    rig.dialog.focus();
    rig.screen();
    rig.keys(&[KeyCode::Down, KeyCode::Down, KeyCode::Enter, KeyCode::Enter, KeyCode::Enter]);
    assert_eq!(decided(first), Some(PermissionPromptDecision::AllowOnce));
    assert!(rig.screen().contains("2 of 2"));
    assert!(rig.dialog.is_waiting(), "Enter at once was not meant for the second");
    rig.wait(300);
    rig.key(KeyCode::Enter);
    assert_eq!(decided(second), Some(DENY));
}

#[test]
fn a_key_held_down_answers_once() {
    let mut rig = Rig::new();
    let (_, first) = rig.ask(command("one"));
    let (_, second) = rig.ask(command("two"));
    rig.dialog.focus();
    rig.key(KeyCode::Enter);
    let mut held = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
    held.kind = KeyEventKind::Repeat;
    for _ in 0..30 {
        rig.wait(33);
        assert_eq!(rig.event(&Event::Key(held)), DialogOutcome::Consumed);
    }
    assert_eq!(decided(first), Some(DENY));
    assert!(rig.dialog.is_waiting());
    rig.key(KeyCode::Enter);
    assert_eq!(decided(second), Some(DENY));
}

#[test]
fn a_retired_request_takes_its_keys_with_it() {
    let mut rig = Rig::new();
    let (id, _gone) = rig.ask(command("one"));
    rig.composer.set_text("draft");
    rig.dialog.focus();
    rig.screen();
    rig.keys(&[KeyCode::Down, KeyCode::Down]);
    assert!(rig.dialog.retire(id, rig.now));
    assert!(!rig.dialog.retire(id, rig.now));
    rig.key(KeyCode::Enter);
    assert!(rig.submitted.is_empty(), "Enter meant for the request does not send the draft");
    rig.wait(300);
    rig.key(KeyCode::Enter);
    assert_eq!(rig.submitted, ["draft"]);
}

#[test]
fn a_request_behind_the_front_can_retire() {
    let mut rig = Rig::new();
    let (_, first) = rig.ask(command("one"));
    let (id, _second) = rig.ask(command("two"));
    rig.dialog.focus();
    rig.screen();
    rig.keys(&[KeyCode::Down, KeyCode::Down]);
    assert!(rig.dialog.retire(id, rig.now));
    rig.key(KeyCode::Enter);
    assert_eq!(decided(first), Some(PermissionPromptDecision::AllowOnce));
}

#[test]
fn a_late_answer_says_so() {
    let mut rig = Rig::new();
    let (_, reply) = rig.ask(command("ls"));
    drop(reply);
    rig.dialog.focus();
    let DialogOutcome::Answered(answer) = rig.key(KeyCode::Enter) else { panic!("no answer") };
    assert!(answer.late);
}

#[test]
fn keys_for_the_whole_program_pass_and_ctrl_c_passes_from_everywhere() {
    let mut rig = Rig::new();
    let _reply = rig.ask(command("ls"));
    rig.dialog.focus();
    let pass = |rig: &mut Rig, code, modifiers| {
        rig.dialog.handle(rig.now, &Event::Key(KeyEvent::new(code, modifiers)))
    };
    assert_eq!(pass(&mut rig, KeyCode::F(1), KeyModifiers::NONE), DialogOutcome::Ignored);
    assert_eq!(pass(&mut rig, KeyCode::Up, KeyModifiers::ALT), DialogOutcome::Ignored);
    assert!(rig.dialog.is_focused());
    rig.keys(&[KeyCode::Down, KeyCode::Enter]);
    let outcome = pass(&mut rig, KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(outcome, DialogOutcome::Ignored);
    assert!(rig.dialog.is_waiting());
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
        rig.dialog.draw(area, &mut buf, &Theme::plain());
        for y in 0..screen.height {
            for x in 0..screen.width {
                let inside = area.contains(Position::new(x, y));
                assert!(inside || buf[(x, y)].symbol() == "#", "{width}x{height} at {x},{y}");
            }
        }
        if width < 20 {
            continue;
        }
        let text = super::super::picker::tests::shown(&buf, None);
        assert!(text.contains("› Deny"), "{width}x{height}:\n{text}");
        assert!(text.contains("echo"), "{width}x{height}: some input is visible:\n{text}");
        assert_eq!(rig.dialog.seen_end, height == 50, "all of it fits only there");
    }
}

mod random {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Key(KeyCode),
        Ask(bool),
        Retire,
        Wait(u64),
        FocusKey,
        Draw(u16, u16),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => proptest::char::range('!', '~').prop_map(|c| Step::Key(KeyCode::Char(c))),
            2 => Just(Step::Key(KeyCode::Char(' '))),
            3 => prop_oneof![
                Just(KeyCode::Up), Just(KeyCode::Down), Just(KeyCode::Tab), Just(KeyCode::PageDown),
                Just(KeyCode::End), Just(KeyCode::Enter), Just(KeyCode::Esc),
            ].prop_map(Step::Key),
            2 => any::<bool>().prop_map(Step::Ask),
            1 => Just(Step::Retire),
            3 => (0u64..900).prop_map(Step::Wait),
            1 => Just(Step::FocusKey),
            3 => (1u16..90, 1u16..30).prop_map(|(w, h)| Step::Draw(w, h)),
        ]
    }

    proptest! {
        /// Whatever is typed, whenever requests come and go: each printable character is in the
        /// draft or in what was sent, in order, unless it was typed into the field for a reason;
        /// and nothing is allowed without a move to it and Enter.
        #[test]
        fn typing_is_never_lost_and_never_allows(steps in prop::collection::vec(step(), 0..120)) {
            let mut rig = Rig::new();
            let mut typed = String::new();
            let mut open: Vec<(RequestId, Reply)> = Vec::new();
            let mut moves = 0;
            for step in steps {
                match step {
                    Step::Key(code) => {
                        let in_field = rig.dialog.reason.is_some();
                        let down = matches!(code, KeyCode::Down | KeyCode::Tab);
                        // The composer's own lists and history would rewrite the draft.
                        if !rig.dialog.is_focused() && !matches!(code, KeyCode::Char(_)) {
                            if code == KeyCode::Enter && typed.ends_with('\\') {
                                continue;
                            }
                            if !matches!(code, KeyCode::Enter) {
                                continue;
                            }
                        }
                        if let KeyCode::Char(c) = code && !in_field {
                            if c == '/' {
                                continue;
                            }
                            typed.push(c);
                        }
                        let focused = rig.dialog.is_focused();
                        match rig.key(code) {
                            DialogOutcome::Answered(answer) => {
                                if matches!(
                                    answer.decision,
                                    PermissionPromptDecision::AllowOnce
                                        | PermissionPromptDecision::AllowForSession
                                ) {
                                    prop_assert!(code == KeyCode::Enter && moves >= 2);
                                }
                                moves = 0;
                            }
                            _ if focused && down && !in_field => moves += 1,
                            _ => {}
                        }
                        if !rig.dialog.is_focused() {
                            moves = 0;
                        }
                    }
                    Step::Ask(long) => {
                        let text = if long { "echo\n".repeat(50) } else { "ls".to_owned() };
                        open.push(rig.ask(command(&text)));
                    }
                    Step::Retire => {
                        if let Some((id, _)) = open.pop()
                            && rig.dialog.retire(id, rig.now)
                            && rig.dialog.choice == Choice::Deny
                        {
                            moves = 0;
                        }
                    }
                    Step::Wait(ms) => rig.wait(ms),
                    Step::FocusKey => {
                        if !rig.dialog.is_focused() {
                            moves = 0;
                        }
                        rig.dialog.focus();
                    }
                    Step::Draw(width, height) => {
                        rig.size = (width, height);
                        rig.screen();
                    }
                }
            }
            let mut kept: String = rig.submitted.concat();
            kept.push_str(&rig.composer.text());
            // Blanks at the ends of a sent prompt are trimmed.
            let bare = |text: &str| text.replace(' ', "");
            prop_assert_eq!(bare(&kept), bare(&typed));
        }
    }
}
