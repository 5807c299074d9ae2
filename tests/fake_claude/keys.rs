//! Bytes of the terminal become keys and pastes, cut anywhere.

/// What was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Text(String),
    Paste(String),
    Enter,
    /// A new line in the box: LF, or ESC CR.
    NewLine,
    Escape,
    Up,
    Down,
    Tab,
    Backspace,
    CtrlC,
    CtrlD,
    CtrlU,
}

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// Takes bytes; keeps what is not whole yet.
#[derive(Debug, Default)]
pub struct Keys {
    waiting: Vec<u8>,
}

impl Keys {
    /// Adds bytes and returns the keys that are whole now.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.waiting.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((used, key)) = step(&self.waiting) {
            self.waiting.drain(..used);
            push(&mut keys, key);
        }
        keys
    }

    /// True when only time can tell what an ESC means.
    pub fn is_waiting(&self) -> bool {
        self.waiting == b"\x1b"
    }

    /// Nothing followed: the ESC was the key.
    pub fn settle(&mut self) -> Vec<Key> {
        if self.is_waiting() {
            self.waiting.clear();
            vec![Key::Escape]
        } else {
            Vec::new()
        }
    }
}

/// Neighbouring letters become one text.
fn push(keys: &mut Vec<Key>, key: Option<Key>) {
    match (keys.last_mut(), key) {
        (Some(Key::Text(before)), Some(Key::Text(more))) => before.push_str(&more),
        (_, Some(key)) => keys.push(key),
        (_, None) => {}
    }
}

/// The first key of these bytes with its length; none when it is not whole. A sequence without
/// meaning gives no key.
fn step(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let key = match *bytes.first()? {
        b'\r' => Key::Enter,
        b'\n' => Key::NewLine,
        b'\t' => Key::Tab,
        0x03 => Key::CtrlC,
        0x04 => Key::CtrlD,
        0x15 => Key::CtrlU,
        0x08 | 0x7f => Key::Backspace,
        0x1b => return escape(bytes),
        0..=0x1f => return Some((1, None)),
        _ => return letter(bytes),
    };
    Some((1, Some(key)))
}

fn letter(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let length = match bytes[0] {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    };
    let whole = bytes.get(..length)?;
    let text = String::from_utf8_lossy(whole).into_owned();
    Some((length, Some(Key::Text(text))))
}

fn escape(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    if bytes.starts_with(PASTE_BEGINS) {
        let body = &bytes[PASTE_BEGINS.len()..];
        let end = body.windows(PASTE_ENDS.len()).position(|window| window == PASTE_ENDS)?;
        let text = String::from_utf8_lossy(&body[..end]).into_owned();
        let used = PASTE_BEGINS.len() + end + PASTE_ENDS.len();
        return Some((used, Some(Key::Paste(text))));
    }
    match bytes.get(1)? {
        b'\r' => Some((2, Some(Key::NewLine))),
        b'\x1b' => Some((1, Some(Key::Escape))),
        b'[' => {
            let end = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte))? + 2;
            let key = match &bytes[2..=end] {
                b"A" => Some(Key::Up),
                b"B" => Some(Key::Down),
                _ => None,
            };
            Some((end + 1, key))
        }
        b']' | b'P' | b'_' => {
            let end = bytes.iter().position(|byte| *byte == 0x07);
            let string_end = bytes.windows(2).skip(1).position(|two| two == b"\x1b\\");
            match (end, string_end) {
                (Some(end), _) => Some((end + 1, None)),
                (None, Some(end)) => Some((end + 3, None)),
                (None, None) => None,
            }
        }
        b'O' => Some((3, None)).filter(|_| bytes.len() >= 3),
        _ => Some((2, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(bytes: &[u8], cuts: &[usize]) -> Vec<Key> {
        let mut keys = Keys::default();
        let mut all = Vec::new();
        let mut from = 0;
        for to in cuts.iter().copied().chain([bytes.len()]) {
            for key in keys.feed(&bytes[from..to]) {
                push(&mut all, Some(key));
            }
            from = to;
        }
        all.extend(keys.settle());
        all
    }

    #[test]
    fn any_cut_gives_the_same_keys() {
        let bytes =
            "a\u{e4}\x1b[200~two\nlines\x1b[31m\x1b[201~\r\x1b[?1;2c\x1b]11;x\x07\x1b[A\x03\x1b"
                .as_bytes();
        let whole = fed(bytes, &[]);
        let expected = [
            Key::Text("a\u{e4}".to_owned()),
            Key::Paste("two\nlines\x1b[31m".to_owned()),
            Key::Enter,
            Key::Up,
            Key::CtrlC,
            Key::Escape,
        ];
        assert_eq!(whole, expected);
        for cut in 1..bytes.len() {
            assert_eq!(fed(bytes, &[cut]), whole, "cut at {cut}");
        }
    }
}
