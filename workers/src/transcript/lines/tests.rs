use proptest::prelude::*;

use super::*;

#[derive(Debug, PartialEq, Eq, Clone)]
enum Found {
    Line(u64, Vec<u8>),
    TooLong(u64),
}

fn read(parts: &[&[u8]], limit: usize) -> Vec<Found> {
    let mut lines = Lines::new(limit);
    let mut found = Vec::new();
    for part in parts {
        lines.feed(part, |piece| {
            found.push(match piece {
                Piece::Line { offset, bytes } => Found::Line(offset, bytes.to_vec()),
                Piece::TooLong { offset, .. } => Found::TooLong(offset),
            });
        });
    }
    found
}

#[test]
fn lines_are_told_with_their_offsets() {
    let expected = [Found::Line(0, b"ab".to_vec()), Found::Line(3, vec![]), Found::TooLong(4)];
    assert_eq!(read(&[b"ab\n\nabcdefgh\nxy"], 4), expected);
}

#[test]
fn a_line_of_exactly_the_limit_is_taken() {
    assert_eq!(read(&[b"abcd\nabcde\n"], 4), [Found::Line(0, b"abcd".to_vec()), Found::TooLong(5)]);
}

#[test]
fn what_is_behind_a_line_that_is_too_long_is_read() {
    let found = read(&[b"abc", b"def", b"ghi\n", b"ok\n"], 4);
    assert_eq!(found, [Found::TooLong(0), Found::Line(10, b"ok".to_vec())]);
}

#[test]
fn a_line_that_is_too_long_is_not_kept() {
    let mut lines = Lines::new(LINE_LIMIT);
    let part = vec![b'x'; 1024 * 1024];
    let mut told = 0;
    for _ in 0..50 {
        lines.feed(&part, |_| told += 1);
        assert!(lines.line.capacity() <= 2 * LINE_LIMIT);
    }
    assert_eq!(told, 1);
    assert_eq!(lines.line.capacity(), 0);
}

#[test]
fn the_rest_of_a_line_that_was_begun_elsewhere_is_passed_over() {
    let mut lines = Lines::new(16);
    lines.restart_inside(100);
    let mut found = Vec::new();
    lines.feed(b"rest\nwhole\n", |piece| match piece {
        Piece::Line { offset, bytes } => found.push((offset, bytes.to_vec())),
        Piece::TooLong { .. } => panic!("not too long"),
    });
    assert_eq!(found, [(105, b"whole".to_vec())]);
}

proptest! {
    #[test]
    fn any_cut_of_the_bytes_gives_the_same_lines(
        text in "([a-zé日]{0,6}\n?){0,8}",
        cuts in prop::collection::vec(0usize..64, 0..6),
    ) {
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(&parts, 7), read(&[bytes], 7));
    }
}
