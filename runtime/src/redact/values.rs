//! Known values alone, in text that is shown while it arrives.
//!
//! The words of a model pass here: what has the *shape* of a key may be an example, and holding back
//! words until a shape is certain would make an answer stutter. So only what this process was given
//! counts, and at most the beginning of such a value is held back.

use std::borrow::Cow;

use super::{REDACTED, Redactor};

impl Redactor {
    /// The text without the known values; nothing is judged by its shape. Borrows when there is none.
    pub fn redact_values<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.values.iter().any(|value| text.contains(value.as_str())) {
            return Cow::Borrowed(text);
        }
        let mut stream = self.value_stream();
        let mut out = stream.push(text);
        out.push_str(&stream.finish());
        Cow::Owned(out)
    }

    /// As [`Redactor::redact_values`], for text that arrives in pieces: any cut gives the same text.
    pub fn value_stream(&self) -> ValueStream {
        ValueStream { redactor: self.clone(), pending: String::new() }
    }
}

/// Takes known values out of text that arrives in pieces.
#[derive(Debug, Clone)]
pub struct ValueStream {
    redactor: Redactor,
    /// What may be the beginning of a value.
    pending: String,
}

impl ValueStream {
    /// Takes a piece and returns what is ready, without known values.
    pub fn push(&mut self, piece: &str) -> String {
        self.pending.push_str(piece);
        self.let_out(false)
    }

    /// Returns the rest: nothing follows.
    pub fn finish(&mut self) -> String {
        self.let_out(true)
    }

    /// From left to right, the longest value that stands at a place.
    fn let_out(&mut self, ended: bool) -> String {
        let text = std::mem::take(&mut self.pending);
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            // Longest first: one that may still come wins over a shorter one that is there.
            let found = self.redactor.values.iter().find(|value| {
                rest.starts_with(value.as_str()) || (!ended && value.starts_with(rest))
            });
            match found {
                Some(value) if rest.starts_with(value.as_str()) => {
                    out.push_str(REDACTED);
                    rest = &rest[value.len()..];
                }
                Some(_) => break,
                None => {
                    out.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        rest.clone_into(&mut self.pending);
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn redactor() -> Redactor {
        Redactor::new(["sk-ant-planted", "sk-ant-planted-longer", "ant-plan", "ééééé"])
    }

    #[test]
    fn values_go_and_shapes_stay() {
        for (input, expected) in [
            ("the key sk-ant-planted.", "the key [redacted]."),
            ("sk-ant-planted-longer", "[redacted]"),
            ("sk-ant-planted-lo", "[redacted]-lo"),
            ("an ant-plan", "an [redacted]"),
            ("sk-ant-other-key-0123456789", "sk-ant-other-key-0123456789"),
            ("ends in sk-ant", "ends in sk-ant"),
        ] {
            assert_eq!(redactor().redact_values(input), expected, "{input}");
        }
    }

    #[test]
    fn only_what_may_become_a_value_is_held_back() {
        let mut stream = redactor().value_stream();
        assert_eq!(stream.push("the word"), "the word");
        assert_eq!(stream.push(" is"), " i");
        assert_eq!(stream.push("k-ant-"), "");
        assert_eq!(stream.push("eater"), "sk-ant-eater");
        assert_eq!(stream.finish(), "");
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_text(
            parts in proptest::collection::vec(prop_oneof![
                Just("sk-ant-planted"), Just("-longer"), Just("sk-"), Just("ant-"), Just("plan"),
                Just("é"), Just("éééé"), Just(" "), Just("s"),
            ], 0..24),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let whole = parts.concat();
            let mut at: Vec<usize> = cuts
                .iter()
                .map(|index| whole.floor_char_boundary(index.index(whole.len() + 1)))
                .collect();
            at.sort_unstable();
            let mut stream = redactor().value_stream();
            let (mut out, mut from) = (String::new(), 0);
            for to in at {
                out.push_str(&stream.push(&whole[from..to]));
                from = to;
            }
            out.push_str(&stream.push(&whole[from..]));
            out.push_str(&stream.finish());
            prop_assert_eq!(&out, &redactor().redact_values(&whole));
            prop_assert!(!out.contains("sk-ant-planted") && !out.contains("ant-plan"));
        }
    }
}
