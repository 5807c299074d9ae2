//! Whether a request is part of the conversation: it offers the model tools. What the CLI asks on the
//! side (a title, the gist of a web page) offers none.
//!
//! The body passes in pieces and is not kept, so this looks at the bytes as they go by: a JSON reader
//! that knows strings and depth, and nothing else.

use serde_json::Value;

/// Looks for the key `tools` of the outermost object.
#[derive(Debug, Default)]
pub(super) struct ToolScan {
    depth: usize,
    string: Option<Text>,
    state: Seek,
}

/// A string that is being read.
#[derive(Debug)]
struct Text {
    escaped: bool,
    /// Its raw bytes, as long as it may still be the key.
    raw: Option<Vec<u8>>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Seek {
    /// Somewhere where no key of the outermost object can begin.
    #[default]
    Value,
    /// A string here is a key of the outermost object.
    Key,
    /// It was `tools`; the colon is still to come.
    Colon,
    /// Its value begins next.
    List,
    /// It is a list; is there anything in it?
    Entry,
    Done(bool),
}

/// No key that is written shortly is longer, even where each character is escaped.
const LONGEST_KEY: usize = 30;

impl ToolScan {
    /// The next piece of the body.
    pub fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Seek::Done(_) = self.state {
                return;
            }
            self.step(*byte);
        }
    }

    /// Whether a list of tools with something in it went by.
    pub fn found(&self) -> bool {
        self.state == Seek::Done(true)
    }

    /// Whether what went by says that there is no such list: not so when it was not read to its end.
    pub fn denied(&self) -> bool {
        self.state == Seek::Done(false)
    }

    fn step(&mut self, byte: u8) {
        if self.string.is_some() {
            return self.step_string(byte);
        }
        if byte.is_ascii_whitespace() {
            return;
        }
        match self.state {
            Seek::Colon if byte == b':' => self.state = Seek::List,
            Seek::List => self.state = if byte == b'[' { Seek::Entry } else { Seek::Done(false) },
            Seek::Entry => self.state = Seek::Done(byte != b']'),
            _ => self.step_structure(byte),
        }
    }

    fn step_structure(&mut self, byte: u8) {
        match byte {
            b'"' => {
                let raw = (self.state == Seek::Key).then(Vec::new);
                self.string = Some(Text { escaped: false, raw });
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.state = if self.depth == 1 && byte == b'{' { Seek::Key } else { Seek::Value };
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b',' if self.depth == 1 => self.state = Seek::Key,
            _ => {}
        }
    }

    fn step_string(&mut self, byte: u8) {
        let Some(text) = &mut self.string else { return };
        if !text.escaped && byte == b'"' {
            let is_it = text.raw.take().is_some_and(|raw| is_tools(&raw));
            self.string = None;
            if self.state == Seek::Key {
                self.state = if is_it { Seek::Colon } else { Seek::Value };
            }
            return;
        }
        text.escaped = !text.escaped && byte == b'\\';
        match &mut text.raw {
            Some(raw) if raw.len() < LONGEST_KEY => raw.push(byte),
            _ => text.raw = None,
        }
    }
}

/// A key may be written with escapes.
fn is_tools(raw: &[u8]) -> bool {
    let quoted = [b"\"", raw, b"\""].concat();
    serde_json::from_slice(&quoted).is_ok_and(|key: Value| key == "tools")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn scan(body: &[u8], piece: usize) -> bool {
        let mut scan = ToolScan::default();
        body.chunks(piece).for_each(|bytes| scan.feed(bytes));
        scan.found()
    }

    #[test]
    fn only_a_filled_list_under_the_outermost_key_counts() {
        for (body, expected) in [
            (r#"{"model":"m","tools":[{"name":"Bash"}]}"#, true),
            (r#"{ "tools" : [ 1 ] }"#, true),
            (r#"{"a":[{"b":{}}],"tools":["x"]}"#, true),
            ("{\"t\\u006fols\":[1]}", true),
            (r#"{"tools":[]}"#, false),
            (r#"{"tools": [ ] , "a":1}"#, false),
            (r#"{"tools":null}"#, false),
            (r#"{"a":{"tools":[1]}}"#, false),
            (r#"{"a":"tools","b":[1]}"#, false),
            (r#"{"a":"\"tools\":[1]"}"#, false),
            (r#"[{"tools":[1]}]"#, false),
            (r#"["tools",[1]]"#, false),
            ("", false),
            ("tools:[1]", false),
            ("}}}]\"", false),
        ] {
            for piece in 1..=body.len().max(1) {
                assert_eq!(scan(body.as_bytes(), piece), expected, "{body} by {piece}");
            }
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            Just(json!("tools")),
            Just(json!([])),
            Just(json!("\"tools\":[1]\\")),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let key = prop_oneof![Just("tools".to_owned()), ".*"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key, inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_whole_reader_for_any_cut(body in any_json(), piece in 1_usize..40) {
            let expected = body.get("tools").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
            prop_assert_eq!(scan(body.to_string().as_bytes(), piece), expected);
        }

        #[test]
        fn it_takes_any_bytes(body in prop::collection::vec(any::<u8>(), 0..200)) {
            scan(&body, 7);
        }
    }
}
