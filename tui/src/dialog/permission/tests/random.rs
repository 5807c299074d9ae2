//! Any keys and requests, in any order.

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
