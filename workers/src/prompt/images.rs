//! Images that the CLI takes out of a prompt.
//!
//! A line of a paste, or what follows a space before a `/`, that is the path of an image file becomes
//! a marker `[Image #n]` and an attached image; the words around it stay.

/// The endings of files that the CLI attaches.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// A stretch of a prompt.
struct Piece<'a> {
    words: Vec<&'a str>,
    is_image: bool,
}

/// Whether `seen` is `sent` with as many image paths taken out as it has markers, in their order. A
/// path that was not attached (there is no such file) stays among the words.
pub(super) fn matches(sent: &str, seen: &str) -> bool {
    let (seen, images) = without_markers(seen);
    if images == 0 {
        return false;
    }
    let seen: Vec<&str> = seen.split_whitespace().collect();
    fits(pieces(sent), &seen, images)
}

fn pieces(sent: &str) -> impl Iterator<Item = Piece<'_>> {
    sent.lines()
        .flat_map(split_before_paths)
        .map(|piece| Piece { words: piece.split_whitespace().collect(), is_image: is_image(piece) })
}

/// The CLI takes each part of a line that begins with a path for itself.
fn split_before_paths(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    for (at, _) in line.match_indices(" /") {
        parts.push(&line[begin..at]);
        begin = at + 1;
    }
    parts.push(&line[begin..]);
    parts
}

fn is_image(piece: &str) -> bool {
    let path = piece.trim().trim_matches(['"', '\'']).to_ascii_lowercase();
    ENDINGS.iter().any(|ending| path.len() > ending.len() && path.ends_with(ending))
}

/// The pieces are the words, but for exactly so many images.
fn fits<'a>(pieces: impl Iterator<Item = Piece<'a>>, seen: &[&str], mut images: usize) -> bool {
    let mut seen = seen;
    for piece in pieces {
        match seen.strip_prefix(piece.words.as_slice()) {
            Some(rest) => seen = rest,
            None if piece.is_image && images > 0 => images -= 1,
            None => return false,
        }
    }
    seen.is_empty() && images == 0
}

/// Without `[Image #n]`, with a space in the place of each, and how many there were.
fn without_markers(text: &str) -> (String, usize) {
    const OPEN: &str = "[Image #";
    let mut left = String::with_capacity(text.len());
    let mut rest = text;
    let mut count = 0;
    while let Some((before, after)) = rest.split_once(OPEN) {
        left.push_str(before);
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        match after[digits..].strip_prefix(']') {
            Some(behind) if digits > 0 => {
                left.push(' ');
                count += 1;
                rest = behind;
            }
            _ => {
                left.push_str(OPEN);
                rest = after;
            }
        }
    }
    (left + rest, count)
}
