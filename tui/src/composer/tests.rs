//! Keys in, screens and outcomes out.

use crossterm::event::{KeyModifiers, ModifierKeyCode};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::*;
use crate::theme::Theme;
use ComposerOutcome as Outcome;

struct Rig {
    composer: Composer,
    now: Instant,
}

impl Rig {
    fn new() -> Self {
        Self { composer: Composer::default(), now: Instant::now() }
    }

    fn with_history(entries: &[&str]) -> Self {
        let mut rig = Self::new();
        rig.composer.load_history(entries.iter().map(|e| (*e).to_owned()).collect());
        rig
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Outcome {
        self.composer.handle(self.now, &Event::Key(KeyEvent::new(code, modifiers)))
    }

    /// Keys by name, separated by spaces: `a`, `enter`, `ctrl+c`, `alt+b`, `shift+enter`.
    fn keys(&mut self, names: &str) -> Outcome {
        let mut last = Outcome::Ignored;
        for name in names.split(' ') {
            let mut modifiers = KeyModifiers::NONE;
            let mut rest = name;
            while let Some((head, tail)) = rest.split_once('+').filter(|(_, tail)| !tail.is_empty())
            {
                modifiers |= match head {
                    "ctrl" => KeyModifiers::CONTROL,
                    "alt" => KeyModifiers::ALT,
                    _ => KeyModifiers::SHIFT,
                };
                rest = tail;
            }
            let code = match rest {
                "enter" => KeyCode::Enter,
                "up" => KeyCode::Up,
                "down" => KeyCode::Down,
                "left" => KeyCode::Left,
                "right" => KeyCode::Right,
                "home" => KeyCode::Home,
                "end" => KeyCode::End,
                "back" => KeyCode::Backspace,
                "del" => KeyCode::Delete,
                "tab" => KeyCode::Tab,
                "esc" => KeyCode::Esc,
                "space" => KeyCode::Char(' '),
                one => KeyCode::Char(one.chars().next().unwrap()),
            };
            last = self.press(code, modifiers);
        }
        last
    }

    fn type_text(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            self.press(KeyCode::Char(c), KeyModifiers::NONE);
        }
        self
    }

    fn paste(&mut self, text: &str) {
        assert_eq!(
            self.composer.handle(self.now, &Event::Paste(text.to_owned())),
            Outcome::Consumed
        );
    }

    fn text(&self) -> String {
        self.composer.text()
    }

    /// The composer at this size, `|` where the cursor is, trailing spaces cut.
    fn screen(&mut self, width: u16, max: u16) -> String {
        let height = self.composer.height(width, max);
        let area = Rect::new(0, 0, width, height);
        let mut buf = Buffer::empty(area);
        let caret = self.composer.draw(area, &mut buf, &Theme::plain());
        shown(&buf, caret)
    }

    fn list(&mut self, width: u16) -> String {
        let area = Rect::new(0, 0, width, self.composer.completion_height(20));
        let mut buf = Buffer::empty(area);
        self.composer.draw_completion(area, &mut buf, &Theme::plain());
        shown(&buf, None)
    }
}

fn shown(buf: &Buffer, caret: Option<Position>) -> String {
    let area = *buf.area();
    let mut out = String::new();
    for y in area.top()..area.bottom() {
        let mut line = String::new();
        let mut skip = 0;
        for x in area.left()..area.right() {
            if caret == Some(Position::new(x, y)) {
                line.push('|');
            }
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buf[(x, y)].symbol();
            skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[test]
fn enter_submits_and_leaves_an_empty_draft() {
    let mut rig = Rig::new();
    rig.type_text("hello");
    assert_eq!(rig.keys("enter"), Outcome::Submit("hello".into()));
    assert!(rig.composer.is_empty());
    assert_eq!(rig.keys("enter"), Outcome::Consumed, "an empty draft is not sent");
}

#[test]
fn four_chords_make_a_new_line() {
    for chord in ["ctrl+j", "shift+enter", "alt+enter", "\\ enter"] {
        let mut rig = Rig::new();
        rig.type_text("a");
        assert_eq!(rig.keys(chord), Outcome::Consumed, "{chord}");
        rig.type_text("b");
        assert_eq!(rig.text(), "a\nb", "{chord}");
    }
}

#[test]
fn control_keys_have_the_meanings_of_the_line_editor() {
    let mut rig = Rig::new();
    assert_eq!(rig.keys("ctrl+p"), Outcome::ProviderSwap);
    assert_eq!(rig.keys("ctrl+t"), Outcome::TeamToggle);
    assert_eq!(rig.keys("ctrl+d"), Outcome::Exit);
    rig.type_text("ab");
    rig.keys("home");
    assert_eq!(rig.keys("ctrl+d"), Outcome::Consumed);
    assert_eq!(rig.text(), "b", "with a draft Ctrl+D deletes");
}

#[test]
fn keys_of_the_keymap_are_left_to_it() {
    let mut rig = Rig::new();
    rig.type_text("draft");
    for key in ["esc", "tab", "ctrl+o", "ctrl+g", "ctrl+l", "ctrl+z", "alt+up", "ctrl+home"] {
        assert_eq!(rig.keys(key), Outcome::Ignored, "{key}");
    }
    assert_eq!(rig.press(KeyCode::PageUp, KeyModifiers::NONE), Outcome::Ignored);
    assert_eq!(rig.press(KeyCode::Char('c'), KeyModifiers::SUPER), Outcome::Ignored);
    assert_eq!(rig.text(), "draft");
}

#[test]
fn releases_do_nothing_and_repeats_type() {
    let mut rig = Rig::new();
    let mut key = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE);
    for (kind, expected) in
        [(KeyEventKind::Press, "x"), (KeyEventKind::Release, "x"), (KeyEventKind::Repeat, "xx")]
    {
        key.kind = kind;
        rig.composer.handle(rig.now, &Event::Key(key));
        assert_eq!(rig.text(), expected);
    }
}

#[test]
fn the_first_ctrl_c_never_loses_the_draft() {
    for back in ["up", "ctrl+y", "ctrl+_"] {
        let mut rig = Rig::with_history(&["older"]);
        rig.type_text("precious").keys("ctrl+j");
        rig.type_text("words");
        assert_eq!(rig.keys("ctrl+c"), Outcome::Cancel);
        assert!(rig.composer.is_empty());
        rig.keys(back);
        assert_eq!(rig.text(), "precious\nwords", "{back}");
    }
}

#[test]
fn ctrl_u_empties_the_whole_draft_and_it_comes_back() {
    for back in ["up", "ctrl+y", "ctrl+7"] {
        let mut rig = Rig::new();
        rig.paste("one\ntwo");
        rig.keys("ctrl+u");
        assert!(rig.composer.is_empty());
        rig.keys(back);
        assert_eq!(rig.text(), "one\ntwo", "{back}");
    }
}

#[test]
fn ctrl_c_twice_on_an_empty_draft_leaves_within_the_window() {
    let mut rig = Rig::new();
    assert_eq!(rig.keys("ctrl+c"), Outcome::Cancel);
    insta::assert_snapshot!(rig.screen(30, 5), @r"
    ❯ |Ask for something, or / for
    press Ctrl+C again to quit
    ");
    let deadline = rig.composer.next_deadline().unwrap();
    rig.now = deadline;
    assert_eq!(rig.keys("ctrl+c"), Outcome::Cancel, "too late counts as the first");
    rig.now += Duration::from_millis(1_900);
    assert_eq!(rig.keys("ctrl+c"), Outcome::Exit);
}

#[test]
fn another_key_or_the_time_takes_the_quit_question_back() {
    let mut rig = Rig::new();
    rig.keys("ctrl+c a back");
    assert_eq!(rig.keys("ctrl+c"), Outcome::Cancel);
    assert!(!rig.composer.tick(rig.now));
    assert!(rig.composer.tick(rig.now + QUIT_WINDOW));
    assert_eq!(rig.composer.next_deadline(), None);
    rig.keys("ctrl+c");
    rig.composer.disarm_quit();
    assert_eq!(rig.keys("ctrl+c"), Outcome::Cancel);
}

#[test]
fn a_modifier_reported_alone_is_no_key() {
    let mut rig = Rig::new();
    rig.keys("ctrl+c");
    let modifier = KeyCode::Modifier(ModifierKeyCode::LeftControl);
    assert_eq!(rig.press(modifier, KeyModifiers::CONTROL), Outcome::Ignored);
    assert_eq!(rig.keys("ctrl+c"), Outcome::Exit);
}

#[test]
fn the_application_can_put_the_draft_aside() {
    let mut rig = Rig::with_history(&["old"]);
    rig.type_text("mine").keys("ctrl+r o l");
    rig.composer.clear();
    assert!(rig.composer.is_empty() && !rig.composer.is_searching());
    rig.keys("up");
    assert_eq!(rig.text(), "mine");
}

#[test]
fn moves_and_deletions_go_by_what_a_person_calls_a_character() {
    let family = "👨\u{200d}👩\u{200d}👧";
    for (text, keys, expected) in [
        (format!("a{family}b"), "left back", "ab".to_owned()),
        (format!("a{family}b"), "left left x", format!("ax{family}b")),
        (format!("a{family}b"), "home right del", "ab".to_owned()),
        ("e\u{301}x".to_owned(), "home right y", "e\u{301}yx".to_owned()),
        ("e\u{301}x".to_owned(), "left left z", "ze\u{301}x".to_owned()),
        ("e\u{301}".to_owned(), "back", String::new()),
        ("🇩🇪🇫🇷".to_owned(), "back", "🇩🇪".to_owned()),
        ("日本".to_owned(), "left back", "本".to_owned()),
    ] {
        let mut rig = Rig::new();
        rig.paste(&text);
        rig.keys(keys);
        assert_eq!(rig.text(), expected, "{text:?} after {keys}");
    }
}

#[test]
fn a_character_deletion_leaves_the_kill_buffer_alone() {
    let mut rig = Rig::new();
    rig.type_text("killed kept").keys("ctrl+w");
    rig.paste("e\u{301}");
    rig.keys("back ctrl+y");
    assert_eq!(rig.text(), "killed kept");
}

#[test]
fn emacs_keys_edit() {
    for (keys, expected) in [
        ("ctrl+a x", "xone two"),
        ("ctrl+a ctrl+e x", "one twox"),
        ("ctrl+b x", "one twxo"),
        ("ctrl+a ctrl+f x", "oxne two"),
        ("alt+b x", "one xtwo"),
        ("ctrl+a alt+f x", "one xtwo"),
        ("ctrl+w", "one "),
        ("ctrl+left ctrl+w", "two"),
        ("ctrl+a alt+d", " two"),
        ("ctrl+a ctrl+k", ""),
        ("ctrl+w ctrl+a ctrl+y", "twoone "),
        ("ctrl+h", "one tw"),
        ("alt+back", "one "),
        ("ctrl+w ctrl+_", "one two"),
        ("ctrl+w ctrl+_ alt+_", "one "),
    ] {
        let mut rig = Rig::new();
        rig.type_text("one two");
        rig.keys(keys);
        assert_eq!(rig.text(), expected, "{keys}");
    }
}

#[test]
fn pasted_newlines_never_submit() {
    let mut rig = Rig::new();
    rig.paste("one\r\ntwo\rthree\n");
    assert_eq!(rig.text(), "one\ntwo\nthree\n");
    rig.paste("\n\n");
    assert_eq!(rig.text(), "one\ntwo\nthree\n\n\n");
}

#[test]
fn large_pastes_become_a_chip_that_acts_as_one_character() {
    let big = "line\n".repeat(5_000);
    let mut rig = Rig::new();
    rig.type_text("see ");
    rig.paste(&big);
    insta::assert_snapshot!(rig.screen(40, 5), @"❯ see [pasted 5,000 lines #1]|");
    rig.keys("left x");
    insta::assert_snapshot!(rig.screen(40, 5), @"❯ see x|[pasted 5,000 lines #1]");
    rig.keys("right back");
    assert_eq!(rig.text(), "see x");
    rig.keys("ctrl+_");
    assert!(rig.text() == format!("see x{big}"), "undo brings the chip back");
    rig.keys("left del");
    assert_eq!(rig.text(), "see x");
    rig.keys("ctrl+_");
    assert!(rig.keys("enter") == Outcome::Submit(format!("see x{big}")), "sent whole");
    rig.keys("up");
    assert!(rig.text() == format!("see x{big}"), "history keeps what the chip stands for");
}

#[test]
fn a_draft_of_a_megabyte_is_a_chip_to_edit_and_whole_to_send() {
    let big = "x".repeat(1_000_000);
    let mut rig = Rig::new();
    rig.paste(&big);
    rig.type_text(" and so on");
    insta::assert_snapshot!(rig.screen(50, 5), @"❯ [pasted 1,000,000 characters #1] and so on|");
    assert!(rig.composer.editor_text() == format!("{big} and so on"));
    rig.composer.set_from_editor(&format!("{big} changed\n"));
    insta::assert_snapshot!(rig.screen(50, 5), @"❯ [pasted 1,000,008 characters #2]|");
    assert!(rig.composer.take() == format!("{big} changed"));
    assert!(rig.composer.is_empty());
}

#[test]
fn the_editor_round_trip_keeps_the_draft() {
    let mut rig = Rig::new();
    rig.type_text("draft");
    let text = rig.composer.editor_text();
    rig.composer.set_from_editor(&format!("{text}\nmore\n"));
    assert_eq!(rig.text(), "draft\nmore");
    rig.keys("ctrl+_ ctrl+_");
    assert_eq!(rig.text(), "draft", "undo reaches back over it");
}

#[test]
fn up_brings_the_newest_prompt_first_and_down_the_draft_back() {
    let mut rig = Rig::with_history(&["first", "second\nwith two lines", "third"]);
    rig.type_text("draft");
    for expected in ["third", "second\nwith two lines", "first", "first"] {
        rig.keys("up");
        assert_eq!(rig.text(), expected);
    }
    for expected in ["second\nwith two lines", "third", "draft"] {
        rig.keys("down");
        assert_eq!(rig.text(), expected);
    }
    assert_eq!(rig.keys("down"), Outcome::Ignored);
}

#[test]
fn up_and_down_move_within_several_lines_before_they_leave() {
    let mut rig = Rig::with_history(&["old"]);
    rig.paste("abcdef\nx\nabcdef");
    rig.keys("up up y");
    assert_eq!(rig.text(), "abcdefy\nx\nabcdef", "the column is kept over a short line");
    rig.keys("up");
    assert_eq!(rig.text(), "old");
    rig.keys("down");
    assert_eq!(rig.text(), "abcdefy\nx\nabcdef");
}

#[test]
fn a_submitted_prompt_is_the_newest() {
    let mut rig = Rig::with_history(&["old"]);
    rig.type_text("new").keys("enter");
    rig.keys("up");
    assert_eq!(rig.text(), "new");
    assert_eq!(rig.composer.history(), ["old", "new"]);
}

#[test]
fn ctrl_r_searches_backwards() {
    let mut rig = Rig::with_history(&["fix tests", "add docs", "fix lint"]);
    rig.type_text("mine").keys("ctrl+r");
    rig.type_text("fix");
    insta::assert_snapshot!(rig.screen(60, 5), @r"
    ❯ fix lint
    search: fix|  (Enter takes it, Ctrl+R older, Esc goes back)
    ");
    rig.keys("ctrl+r");
    assert_eq!(rig.text(), "fix tests");
    rig.keys("ctrl+s");
    assert_eq!(rig.text(), "fix lint");
    rig.keys("esc");
    assert_eq!(rig.text(), "mine", "Esc brings the draft back");
    rig.keys("ctrl+r d o");
    assert_eq!(rig.keys("enter"), Outcome::Consumed, "taking a match does not send it");
    assert_eq!(rig.text(), "add docs");
    rig.keys("ctrl+r z z");
    assert!(rig.screen(60, 5).contains("nothing found"));
    rig.keys("ctrl+c");
    assert_eq!(rig.text(), "add docs");
}

#[test]
fn commands_are_offered_with_their_help() {
    let mut rig = Rig::new();
    rig.type_text("/ex");
    insta::assert_snapshot!(rig.list(60), @r"
    › /export [file]  write the conversation as markdown
      /exit           leave; the session stays on disk
      /context        show how full the context is
    ");
    rig.keys("down tab");
    assert_eq!(rig.text(), "/exit");
    assert!(!rig.composer.is_completing());
    assert_eq!(
        rig.keys("enter"),
        Outcome::Command { action: CommandAction::Exit, line: "/exit".into() }
    );
    assert!(rig.composer.is_empty());
}

#[test]
fn enter_completes_a_name_and_runs_it_when_nothing_is_left_to_say() {
    let mut rig = Rig::new();
    rig.type_text("/comp");
    assert_eq!(
        rig.keys("enter"),
        Outcome::Command { action: CommandAction::Compact, line: "/compact".into() }
    );
    rig.type_text("/perm");
    assert_eq!(rig.keys("enter"), Outcome::Consumed);
    assert_eq!(rig.text(), "/permissions ");
    assert!(rig.composer.is_completing(), "the modes are offered");
    rig.keys("down");
    let mode = Some(claw_runtime::permissions::PermissionMode::WorkspaceWrite);
    assert_eq!(
        rig.keys("enter"),
        Outcome::Command {
            action: CommandAction::Permissions(mode),
            line: "/permissions workspace-write".into()
        }
    );
    rig.type_text("/model");
    assert_eq!(
        rig.keys("enter"),
        Outcome::Command { action: CommandAction::Model(None), line: "/model".into() },
        "a complete line is sent as it is"
    );
}

#[test]
fn enter_never_runs_what_only_resembles_the_typed_name() {
    let mut rig = Rig::new();
    rig.type_text("/init");
    assert!(rig.list(60).contains("/session list"), "its letters are there in this order");
    assert_eq!(rig.keys("enter"), Outcome::Consumed);
    assert_eq!(rig.text(), "/init");
    assert!(rig.screen(70, 5).contains("unknown command /init"));
    rig.keys("ctrl+u");
    rig.type_text("/perm");
    rig.keys("tab");
    rig.type_text("full");
    assert_eq!(rig.keys("enter"), Outcome::Consumed);
    assert!(rig.screen(90, 5).contains("unknown permission mode"));
    rig.keys("back back back back");
    rig.type_text("dang");
    assert!(matches!(rig.keys("enter"), Outcome::Command { .. }));
}

#[test]
fn one_row_is_enough_to_say_what_is_wrong() {
    let mut rig = Rig::new();
    rig.type_text("/foo").keys("enter");
    insta::assert_snapshot!(rig.screen(60, 1), @"unknow|n command /foo; did you mean /fork? /help lists them");
    rig.keys("back");
    insta::assert_snapshot!(rig.screen(60, 1), @"❯ /fo|");
}

#[test]
fn esc_closes_the_list_and_it_stays_closed_for_this_text() {
    let mut rig = Rig::new();
    rig.type_text("/mo");
    assert_eq!(rig.keys("esc"), Outcome::Consumed);
    assert!(!rig.composer.is_completing());
    assert_eq!(rig.keys("esc"), Outcome::Ignored);
    rig.type_text("d");
    assert!(rig.composer.is_completing());
}

#[test]
fn an_unknown_command_keeps_the_draft_and_says_what_is_near() {
    let mut rig = Rig::new();
    rig.type_text("/foo bar");
    assert_eq!(rig.keys("enter"), Outcome::Consumed);
    assert_eq!(rig.text(), "/foo bar");
    insta::assert_snapshot!(rig.screen(70, 5), @r"
    ❯ /foo bar|
    unknown command /foo; did you mean /fork? /help lists them
    ");
    rig.type_text("x");
    insta::assert_snapshot!(rig.screen(70, 5), @"❯ /foo barx|");
}

#[test]
fn commands_between_turns_wait_while_one_runs() {
    let mut rig = Rig::new();
    rig.composer.set_busy(true);
    rig.type_text("/compact");
    assert_eq!(rig.keys("enter"), Outcome::Consumed);
    assert_eq!(rig.text(), "/compact");
    assert!(rig.screen(70, 5).contains("/compact waits for the end of the turn"));
    rig.composer.set_busy(false);
    assert!(matches!(rig.keys("enter"), Outcome::Command { .. }));
}

#[test]
fn enter_works_after_a_slash_command() {
    let mut rig = Rig::new();
    rig.type_text("/status").keys("enter");
    rig.type_text("hello");
    assert_eq!(rig.keys("enter"), Outcome::Submit("hello".into()));
    rig.composer.refuse("/retry", "nothing to retry");
    assert_eq!(rig.text(), "/retry");
    assert!(rig.screen(70, 5).contains("nothing to retry"));
}

#[test]
fn prompts_that_begin_with_a_slash_are_sent() {
    let mut rig = Rig::new();
    rig.type_text("/usr/bin/x is broken");
    assert_eq!(rig.keys("enter"), Outcome::Submit("/usr/bin/x is broken".into()));
    rig.type_text("//help me");
    assert_eq!(rig.keys("enter"), Outcome::Submit("/help me".into()));
}

#[test]
fn the_cursor_stands_at_the_caret_in_wrapped_and_wide_text() {
    let mut rig = Rig::new();
    insta::assert_snapshot!(rig.screen(20, 5), @"❯ |Ask for something,");
    rig.type_text("one two three four five");
    insta::assert_snapshot!(rig.screen(20, 5), @r"
    ❯ one two three
      four five|
    ");
    rig.keys("ctrl+u");
    let wide = "日本👨\u{200d}👩\u{200d}👧e\u{301}";
    rig.paste(&format!("{wide}x"));
    assert_eq!(rig.screen(20, 5), format!("❯ {wide}x|\n"));
    rig.keys("left");
    assert_eq!(rig.screen(20, 5), format!("❯ {wide}|x\n"));
    rig.keys("left left");
    assert_eq!(rig.screen(20, 5), "❯ 日本|👨\u{200d}👩\u{200d}👧e\u{301}x\n");
}

#[test]
fn a_draft_taller_than_its_room_scrolls_inside() {
    let mut rig = Rig::new();
    rig.paste("1\n2\n3\n4\n5\n6");
    insta::assert_snapshot!(rig.screen(20, 3), @r"
    ↑ 4
      5
      6|
    ");
    rig.keys("up up up");
    insta::assert_snapshot!(rig.screen(20, 3), @r"
    ↑ 3|
      4
    ↓ 5
    ");
    assert_eq!(rig.composer.height(20, 3), 3);
    assert_eq!(rig.composer.height(20, 10), 6);
}

#[test]
fn hidden_characters_in_a_draft_are_drawn_as_marks() {
    let mut rig = Rig::new();
    rig.paste("a\u{202e}b\tc");
    insta::assert_snapshot!(rig.screen(20, 3), @"❯ a�b    c|");
    assert_eq!(rig.text(), "a\u{202e}b\tc");
}

mod random {
    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = Event> {
        let code = prop_oneof![
            4 => proptest::char::range(' ', '~').prop_map(KeyCode::Char),
            1 => prop_oneof![Just('日'), Just('\u{301}'), Just('\u{200d}'), Just('👩'), Just('/'), Just('\\')]
                .prop_map(KeyCode::Char),
            4 => prop_oneof![
                Just(KeyCode::Enter), Just(KeyCode::Up), Just(KeyCode::Down), Just(KeyCode::Left),
                Just(KeyCode::Right), Just(KeyCode::Home), Just(KeyCode::End), Just(KeyCode::Tab),
                Just(KeyCode::Backspace), Just(KeyCode::Delete), Just(KeyCode::Esc),
            ],
        ];
        let modifiers = prop_oneof![
            4 => Just(KeyModifiers::NONE),
            1 => Just(KeyModifiers::CONTROL),
            1 => Just(KeyModifiers::ALT),
            1 => Just(KeyModifiers::SHIFT),
        ];
        prop_oneof![
            9 => (code, modifiers).prop_map(|(code, mods)| Event::Key(KeyEvent::new(code, mods))),
            1 => prop_oneof![Just("a\nb".to_owned()), Just("x\n".repeat(12)), Just("/model ".to_owned())]
                .prop_map(Event::Paste),
        ]
    }

    proptest! {
        #[test]
        fn any_keys_at_any_size_draw_without_a_panic(
            events in prop::collection::vec(key(), 0..60),
            width in 1u16..40,
            max in 1u16..8,
        ) {
            let mut rig = Rig::with_history(&["one", "/help", "two\nlines"]);
            for event in &events {
                rig.composer.handle(rig.now, event);
                rig.screen(width, max);
                rig.list(width);
                let caret = rig.composer.editor.caret();
                let line = &rig.composer.editor.lines()[caret.line];
                prop_assert!(line.is_char_boundary(caret.byte));
            }
        }

        #[test]
        fn typed_text_arrives_whole_and_in_order(text in "[a-zA-Z0-9 .,日本é]{0,40}") {
            let mut rig = Rig::new();
            rig.type_text(&text);
            prop_assert_eq!(rig.text(), text);
        }
    }
}
