use proptest::prelude::*;

use super::*;

const SIZE: WindowSize = WindowSize { columns: 20, rows: 4 };

fn showing(bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(SIZE);
    screen.feed(bytes);
    screen
}

fn first(bytes: &[u8]) -> ScreenCell {
    *showing(bytes).view().cell(0, 0).unwrap()
}

#[test]
fn text_is_what_the_lines_show() {
    for (output, expected) in [
        (&b"one\r\ntwo  \r\n"[..], "one\ntwo"),
        (b"abc\rX", "Xbc"),
        (b"\x1b[2;3Hhere", "\n  here"),
        (b"gone\x1b[2J\x1b[Hnew", "new"),
        (b"main\x1b[?1049h\x1b[Hother", "other"),
        (b"main\x1b[?1049hother\x1b[?1049l", "main"),
        ("ü 漢 e\u{301}".as_bytes(), "ü 漢 e\u{301}"),
        (b"1\r\n2\r\n3\r\n4\r\n5", "2\n3\n4\n5"),
        (b"", ""),
    ] {
        assert_eq!(showing(output).text(), expected, "{:?}", String::from_utf8_lossy(output));
    }
}

#[test]
fn cells_have_their_colours_and_attributes() {
    let plain = ScreenCell { text: CellText::of("x"), ..ScreenCell::default() };
    for (output, expected) in [
        (&b"x"[..], plain),
        (b"\x1b[1mx", ScreenCell { bold: true, ..plain }),
        (b"\x1b[2mx", ScreenCell { dim: true, ..plain }),
        (b"\x1b[3mx", ScreenCell { italic: true, ..plain }),
        (b"\x1b[4mx", ScreenCell { underline: true, ..plain }),
        (b"\x1b[7mx", ScreenCell { inverse: true, ..plain }),
        (b"\x1b[31mx", ScreenCell { fg: ScreenColour::Indexed(1), ..plain }),
        (b"\x1b[48;5;200mx", ScreenCell { bg: ScreenColour::Indexed(200), ..plain }),
        (b"\x1b[38;2;1;2;3mx", ScreenCell { fg: ScreenColour::Rgb(1, 2, 3), ..plain }),
    ] {
        assert_eq!(first(output), expected, "{:?}", String::from_utf8_lossy(output));
    }
    let wide = showing("漢".as_bytes()).view();
    assert!(wide.cell(0, 0).unwrap().wide);
    assert_eq!(wide.cell(1, 0).unwrap().text.as_str(), "");
    assert_eq!(wide.cells.len(), 80);
    assert_eq!(wide.cell(20, 0), None);
    assert_eq!(wide.cell(0, 4), None);
}

#[test]
fn modes_cursor_and_title_are_told() {
    let view = showing(b"ab").view();
    assert_eq!((view.cursor, view.mouse), (Some((2, 0)), None));
    assert!(!view.application_cursor && !view.bracketed_paste && !view.alternate);
    let view = showing(
        b"\x1b[?25l\x1b[?1h\x1b[?2004h\x1b[?1049h\x1b[?1000h\x1b[?1003h\x1b[?1006h\x1b]0;a title\x07",
    )
    .view();
    assert_eq!(view.cursor, None);
    assert_eq!(view.mouse, Some(Mouse { drags: true, moves: true, sgr: true }));
    assert!(view.application_cursor && view.bracketed_paste && view.alternate);
    assert_eq!(view.title, "a title");
}

#[test]
fn a_title_is_cut() {
    let mut output = b"\x1b]2;".to_vec();
    output.extend([b't'; 5000]);
    output.push(7);
    assert_eq!(showing(&output).title().len(), LONGEST_TITLE);
}

#[test]
fn the_tail_is_the_end_of_the_output_without_sequences() {
    let mut screen = showing(b"\x1b[31mred\x1b[0m\r\n\x1b]0;t\x07end\x07");
    assert_eq!(screen.tail(), "red\nend");
    for chunk in [vec![b'a'; TAIL], vec![b'b'; 10], vec![b'c'; 3 * TAIL], vec![b'd'; 5]] {
        screen.feed(&chunk);
        assert!(screen.tail.len() <= TAIL);
    }
    let tail = screen.tail();
    assert_eq!(tail.len(), TAIL);
    assert!(tail.starts_with('c') && tail.ends_with("cddddd"));
}

#[test]
fn a_sequence_without_end_is_given_up() {
    let mut screen = showing(b"\x1b]52;c;");
    for _ in 0..40 {
        screen.feed(&[b'A'; 16 * 1024]);
    }
    screen.feed(b"\r\n\x1b[2J\x1b[Hback");
    assert_eq!(screen.text(), "back");
    // Text without any sequence is not disturbed by that.
    let mut screen = showing(b"");
    screen.feed("ü".repeat(LONGEST_SEQUENCE).as_bytes());
    screen.feed(b"\r\nend");
    assert!(screen.text().ends_with("ü\nend"), "{}", screen.text());
}

#[test]
fn any_size_is_taken() {
    let mut screen = showing(b"some text");
    for (columns, rows) in [(0, 0), (1, 1), (u16::MAX, u16::MAX), (3, 2), (80, 24)] {
        screen.resize(WindowSize { columns, rows });
        screen.feed("漢字\r\nmore\x1b[9;9Hx".as_bytes());
        let view = screen.view();
        assert_eq!(view.cells.len(), usize::from(view.columns) * usize::from(view.rows));
        assert_eq!(view.columns, columns.clamp(1, LARGEST));
    }
}

/// The parser alone shows "ßa" here.
#[test]
fn half_a_character_at_the_end_of_a_piece_changes_no_order() {
    let text = "äaß漢🙂".as_bytes();
    for cut in 0..=text.len() {
        for second in cut..=text.len() {
            let mut screen = showing(&text[..cut]);
            screen.feed(&text[cut..second]);
            screen.feed(&text[second..]);
            assert_eq!(screen.text(), "äaß漢🙂", "{cut} {second}");
        }
    }
    assert_eq!(showing(b"a\xc3\x1b[1mb\xff\xf0\x9fc").text(), "abc");
}

/// Pieces that terminals see, and some that they should not.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        "[a-zäß漢🙂]{0,9}".prop_map(String::into_bytes),
        (0..40_u16, 0..40_u16).prop_map(|(a, b)| format!("\x1b[{a};{b}H").into_bytes()),
        (0..60_u16, "[A-HJ-MPSTXm]").prop_map(|(n, end)| format!("\x1b[{n}{end}").into_bytes()),
        (1..2100_u16, "[hl]").prop_map(|(n, end)| format!("\x1b[?{n}{end}").into_bytes()),
        "[a-z]{0,5}".prop_map(|title| format!("\x1b]0;{title}\x07").into_bytes()),
        Just(b"\r\n".to_vec()),
        prop::collection::vec(any::<u8>(), 0..12),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_cut_of_the_output_shows_the_same(
        output in output(),
        cuts in prop::collection::vec(1..9_usize, 1..9),
    ) {
        let mut cut = Screen::new(SIZE);
        let (mut rest, mut sizes) = (&output[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
            cut.feed(piece);
            rest = after;
        }
        let whole = showing(&output);
        prop_assert_eq!(cut.view(), whole.view());
        prop_assert_eq!(cut.tail(), whole.tail());
    }
}
