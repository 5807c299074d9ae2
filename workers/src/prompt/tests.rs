use proptest::prelude::*;

use super::*;

/// Takes the bytes of `paste` apart again, as the input box does.
fn unframe(bytes: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(bytes).unwrap();
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = rest.strip_prefix("\x1b[200~").unwrap();
        let (piece, after) = rest.split_once("\x1b[201~").unwrap();
        assert!(!piece.contains('\x1b'));
        pieces.push(piece.to_owned());
        rest = after;
    }
    pieces
}

#[test]
fn every_control_character_is_sanitised_as_documented() {
    for code in (0..0x20_u32).chain(0x7f..0xa0) {
        let c = char::from_u32(code).unwrap();
        let expected = match c {
            '\n' | '\r' => "a\nb".to_owned(),
            '\t' => "a    b".to_owned(),
            _ => "ab".to_owned(),
        };
        let clean = sanitise(&format!("a{c}b"));
        assert_eq!(clean, expected, "U+{code:04X}");
        assert_eq!(unframe(&paste(&clean)).concat(), expected, "U+{code:04X}");
    }
}

#[test]
fn ordinary_text_and_line_ends_are_sanitised_as_documented() {
    for (text, expected) in [
        ("a\r\nb", "a\nb"),
        ("a\rb\r\rc", "a\nb\n\nc"),
        ("a\n\rb", "a\n\nb"),
        ("a\u{a0}b", "a\u{a0}b"),
        ("👨‍👩‍👧‍👦 👍🏽", "👨‍👩‍👧‍👦 👍🏽"),
        ("e\u{301}", "e\u{301}"),
        ("ends with \\", "ends with \\ "),
        ("ends with \\\\", "ends with \\\\ "),
        ("ends with \\ \n\t", "ends with \\ "),
        ("in \\ the middle", "in \\ the middle"),
        ("", ""),
    ] {
        assert_eq!(sanitise(text), expected, "{text:?}");
    }
}

#[test]
fn an_embedded_paste_end_cannot_close_the_frame() {
    for end in ["\x1b[201~", "\u{9b}201~", "\x1b\x1b[201~\x1b[201~"] {
        let bytes = paste(&sanitise(&format!("one{end}\rtwo")));
        let pieces = unframe(&bytes).concat();
        assert!(pieces.starts_with("one") && pieces.ends_with("two"), "{pieces:?}");
        assert!(!bytes.contains(&b'\r') && !pieces.contains('\u{9b}'));
    }
}

#[test]
fn a_prompt_that_begins_with_an_absolute_path_is_accepted_and_commands_are_refused() {
    for text in [
        "/tmp/x is broken",
        "/usr/bin/env",
        "/a/",
        "text\n/compact",
        "a /compact",
        "&x",
        "?x",
        "#x",
        "@file",
        "1",
    ] {
        assert_eq!(prepare(text).unwrap(), text, "{text:?}");
    }
    for text in [
        "/compact",
        "/model sonnet",
        " /clear",
        "\n\u{200b}/clear",
        "/",
        "/ x",
        "/cost a/b",
        "\u{1b}/exit",
    ] {
        let Err(WorkerError::RefusedPrompt(said)) = prepare(text) else {
            panic!("{text:?} was accepted")
        };
        assert!(said.contains("/worker"), "{said}");
    }
    for text in ["", " \n\t", "\u{0}", "\u{200b}"] {
        assert!(matches!(prepare(text), Err(WorkerError::RefusedPrompt(_))), "{text:?}");
    }
}

#[test]
fn a_shell_escape_becomes_plain_text() {
    assert_eq!(prepare("!ls").unwrap(), " !ls");
    assert_eq!(prepare("\u{200b}!ls").unwrap(), " \u{200b}!ls");
    assert!(receipt_matches(&prepare("!ls").unwrap(), "!ls"));
}

#[test]
fn a_command_passes_only_when_it_was_chosen_as_one() {
    assert_eq!(command("/compact keep the plan\n").unwrap(), "/compact keep the plan");
    assert!(command("compact").is_err());
    assert!(command("/compact\nand more").is_err());
}

#[test]
fn steering_refuses_control_characters_nul_and_commands() {
    for text in ["a\0b", "a\x1bb", "\x1b[201~", "a\u{7f}", "a\u{9b}b", "\x03", "/compact", "", "  "]
    {
        assert!(matches!(prepare_steer(text), Err(WorkerError::RefusedPrompt(_))), "{text:?}");
    }
    assert_eq!(prepare_steer("a\r\n\tb /x").unwrap(), "a\n    b /x");
}

#[test]
fn a_receipt_matches_modulo_the_documented_rewriting_only() {
    for (sent, seen) in [
        ("hello", "hello"),
        ("hello \n", "hello"),
        ("a\tb", "a    b"),
        ("a\r\nb", "a\nb"),
        ("cafe\u{301}", "caf\u{e9}"),
        ("a\u{200b}b", "ab"),
        ("x\\ ", "x\\"),
        (
            "1\n2\n3\n4",
            "\n\n<pasted_content id=\"ec7d\">\n1\n2\n3\n4\n</pasted_content id=\"ec7d\">\n",
        ),
        (
            "a1\n2\n3\n4b",
            "a\n\n<pasted_content id=\"ec7d\">\n1\n2\n3\n4\n</pasted_content id=\"ec7d\">\nb",
        ),
        (
            "<pasted_content id=\"x\">\nq\n</pasted_content id=\"x\">",
            "<pasted_content id=\"x\">\nq\n</pasted_content id=\"x\">",
        ),
    ] {
        assert!(receipt_matches(sent, seen), "{sent:?} {seen:?}");
    }
    for (sent, seen) in [
        ("ok", "<task-notification>all is ok</task-notification>"),
        ("1", "11"),
        ("ok", "ok ok"),
        ("ok", "OK"),
        ("", ""),
        (" ", ""),
        ("ok", ""),
        ("a b", "a  b"),
        ("1\n2", "<pasted_content id=\"a\">\n1\n2\n</pasted_content id=\"b\">"),
    ] {
        assert!(!receipt_matches(sent, seen), "{sent:?} {seen:?}");
    }
}

#[test]
fn a_megabyte_is_cut_into_small_pieces_whole_and_in_order() {
    let text = (0..200_000).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
    let text = &text[..1 << 20];
    let pieces = unframe(&paste(text));
    assert!(pieces.iter().all(|piece| piece.len() <= 600 && piece.matches('\n').count() <= 2));
    assert!(pieces.concat() == text);
}

#[test]
fn a_box_of_lines_is_cleared_once_per_line() {
    assert_eq!(clear(3, false), [0x15; 3]);
    assert_eq!(clear(0, true), b"\x1b[201~\x15");
}

fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        any::<char>().prop_map(String::from),
        "[a-z \n\t\\\\]{0,40}",
        Just("👨‍👩‍👧‍👦".to_owned()),
        Just("e\u{301}".to_owned()),
        Just("\r\n".to_owned()),
        Just("\x1b[201~".to_owned()),
        (1..900_usize).prop_map(|n| format!("a{}", "\u{301}".repeat(n))),
        (1..700_usize).prop_map(|n| "x".repeat(n)),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_joined_again_are_the_sanitised_text_and_none_is_over_a_limit(text in texts()) {
        let clean = sanitise(&text);
        let pieces = unframe(&paste(&clean));
        prop_assert_eq!(pieces.concat(), clean);
        for piece in &pieces {
            prop_assert!(!piece.is_empty());
            prop_assert!(piece.encode_utf16().count() <= PIECE_UNITS);
            prop_assert!(piece.matches('\n').count() <= PIECE_NEWLINES);
        }
    }

    #[test]
    fn no_grapheme_of_ordinary_size_is_cut(text in texts()) {
        let clean = sanitise(&text);
        let boundaries: Vec<usize> = clean.grapheme_indices(true)
            .filter(|(_, grapheme)| grapheme.encode_utf16().count() <= PIECE_UNITS)
            .flat_map(|(at, grapheme)| (at + 1)..(at + grapheme.len()))
            .collect();
        let mut at = 0;
        for piece in super::pieces(&clean) {
            at += piece.len();
            prop_assert!(!boundaries.contains(&at));
        }
    }

    #[test]
    fn sanitising_is_stable_and_its_receipt_matches(text in texts()) {
        let clean = sanitise(&text);
        prop_assert_eq!(sanitise(&clean), clean.clone());
        if let Ok(ready) = prepare(&text) {
            prop_assert!(receipt_matches(&ready, ready.trim()));
        }
    }
}

#[test]
fn a_prompt_whose_images_were_attached_is_known_again() {
    for (sent, seen) in [
        // As the CLI was seen to do it.
        ("/tmp/a.png", "[Image #1]"),
        ("compare\n/tmp/a.png\nwith this", "[Image #1]compare\nwith this"),
        ("look at /tmp/a.png", "[Image #1]look at"),
        ("/tmp/a.png\n/tmp/b c.JPG\nwhich one", "[Image #1][Image #2]which one"),
        ("'/tmp/a.png'", "[Image #3]"),
        // The second one is not there.
        ("/tmp/a.png\n/tmp/none.gif", "[Image #1]/tmp/none.gif"),
        ("/tmp/none.gif\n/tmp/a.png", "[Image #1]/tmp/none.gif"),
        ("about [Image #1]", "about [Image #1]"),
    ] {
        assert!(receipt_matches(sent, seen), "{sent:?} {seen:?}");
    }
    for (sent, seen) in [
        ("compare\nthem", "[Image #1]compare\nthem"),
        ("/tmp/a.png\ncompare", "compare"),
        ("/tmp/a.png\ncompare", "[Image #1][Image #2]compare"),
        ("/tmp/a.png\n/tmp/b.png\ncompare", "[Image #1]compare"),
        ("/tmp/a.png\ncompare", "[Image #1]compare it"),
        ("/tmp/a.png\nfirst\nsecond", "[Image #1]second\nfirst"),
        ("/tmp/a.txt\nread", "[Image #1]read"),
        ("ok", "[Image #1]"),
        ("ok", "[Image #]ok"),
    ] {
        assert!(!receipt_matches(sent, seen), "{sent:?} {seen:?}");
    }
    let long = "a line\n".repeat(200_000) + "[Image #1]";
    assert!(receipt_matches(&long, &long));
}
