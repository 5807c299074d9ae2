//! Any keys, at any size.

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
