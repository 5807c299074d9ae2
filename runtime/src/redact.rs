//! Keeps credentials out of what leaves the runtime: results, live output, errors, logs, sessions.
//!
//! Knows the credential values of this process and the shapes of well-known keys. It refuses to
//! guess: a secret of an unknown shape that the process was not given passes unseen.

mod values;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use regex::Regex;

pub use values::ValueStream;

/// What stands in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Environment variables whose values are secrets.
pub const CREDENTIAL_VARIABLES: [&str; 7] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "XAI_API_KEY",
    "DASHSCOPE_API_KEY",
    "OLLAMA_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
];

/// Shorter values are no credentials, and replacing them would garble ordinary text.
const MIN_SECRET_BYTES: usize = 8;

/// A stream holds back at most this much of a line that does not end.
const HOLD_LIMIT: usize = 8 * 1024;
/// What a stream still holds back when it must let go of an endless line.
const FORCED_HOLD: usize = 256;

/// Group 1, where it took part, is kept: it is the name or the scheme before the secret.
/// No pattern reaches over a line end, so a stream may cut there. Compiling cannot fail for a
/// fixed pattern; a test proves it, and `None` would only mean that known values alone are hidden.
static PATTERNS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r#"(?x)
        \b sk-ant-[A-Za-z0-9_-]{{8,}}
        | \b (?: sk | xai )-[A-Za-z0-9_-]{{20,}}
        | \b (?: gh[pousr]_ | github_pat_ ) [A-Za-z0-9_]{{20,}}
        | ( (?i: \b bearer ) [\ \t]+ ) [A-Za-z0-9._~+/=-]{{20,}}
        | ( (?i: {names} | x-api-key ) ["']? [\ \t]* [=:] [\ \t]* ["']? ) [^\s"'\\,;$\[\]{{}}<>] [^\s"'\\,;]{{7,}}
        "#,
        names = CREDENTIAL_VARIABLES.join("|")
    ))
    .ok()
});

/// What may stand before a secret that has not arrived yet.
static OPENING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r#"(?i)(?:bearer|(?:{names}|x-api-key)["']?[ \t]*[=:]?[ \t]*["']?)[ \t]*$"#,
        names = CREDENTIAL_VARIABLES.join("|")
    ))
    .ok()
});

/// Replaces secrets by [`REDACTED`]. Cheap to clone.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Known values, longest first, each within one line.
    values: Arc<[String]>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} known values)", self.values.len())
    }
}

impl Redactor {
    /// A redactor that knows these values beside the well-known shapes. Values shorter than
    /// 8 bytes are ignored.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let mut values: Vec<String> = secrets
            .into_iter()
            .flat_map(|secret| {
                secret.as_ref().lines().map(str::trim).map(str::to_owned).collect::<Vec<_>>()
            })
            .filter(|value| value.len() >= MIN_SECRET_BYTES)
            .collect();
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self { values: values.into() }
    }

    /// Knows the values of [`CREDENTIAL_VARIABLES`] in this process' environment, and `more`
    /// (keys from settings).
    pub fn from_env<S: AsRef<str>>(more: impl IntoIterator<Item = S>) -> Self {
        let environment = CREDENTIAL_VARIABLES.iter().filter_map(|name| std::env::var(name).ok());
        let more: Vec<String> = more.into_iter().map(|secret| secret.as_ref().to_owned()).collect();
        Self::new(environment.chain(more))
    }

    /// The text without secrets. Borrows when there is none.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for value in self.values.iter() {
            if text.contains(value.as_str()) {
                text = Cow::Owned(text.replace(value.as_str(), REDACTED));
            }
        }
        let Some(patterns) = PATTERNS.as_ref() else { return text };
        let replaced = match patterns.replace_all(&text, |caps: &regex::Captures<'_>| {
            let kept = caps.get(1).or_else(|| caps.get(2)).map_or("", |kept| kept.as_str());
            format!("{kept}{REDACTED}")
        }) {
            Cow::Borrowed(_) => None,
            Cow::Owned(replaced) => Some(replaced),
        };
        replaced.map_or(text, Cow::Owned)
    }

    /// As [`Redactor::redact`], in place.
    pub fn redact_in_place(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redact(text) {
            *text = redacted;
        }
    }

    /// A redactor for text that arrives in pieces.
    pub fn stream(&self) -> RedactedStream {
        RedactedStream { redactor: self.clone(), pending: String::new(), swallowing: false }
    }

    /// Where secrets lie in the text.
    fn matches(&self, text: &str) -> Vec<Range<usize>> {
        let known = self.values.iter().flat_map(|value| {
            text.match_indices(value.as_str()).map(|(at, found)| at..at + found.len())
        });
        let shaped = PATTERNS.iter().flat_map(|p| p.find_iter(text).map(|found| found.range()));
        known.chain(shaped).collect()
    }

    /// Up to where text of an unfinished line may go out, whatever follows.
    fn settled_len(&self, text: &str) -> usize {
        let last_word = word_start(text, text.len());
        // Symbols alone (the dots of a progress line) begin no secret, unless one is announced.
        let could_grow = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let announced = |end: usize| OPENING.as_ref().and_then(|p| p.find(&text[..end]));
        let held = text[last_word..].contains(could_grow) || announced(last_word).is_some();
        let mut cut = if held { last_word } else { text.len() };
        for value in self.values.iter() {
            let begun = (1..value.len())
                .rev()
                .filter(|len| value.is_char_boundary(*len))
                .find(|len| text.ends_with(&value[..*len]));
            cut = cut.min(text.len() - begun.unwrap_or(0));
        }
        // Each step left can bring another opening or a secret to the cut.
        loop {
            let before = cut;
            if let Some(found) = announced(cut) {
                cut = found.start();
            }
            cut = self.before_any_match(text, cut);
            if cut == before {
                return cut;
            }
            // What a pattern makes of a word depends on the whole word.
            cut = word_start(text, cut);
        }
    }

    /// The cut, moved left until it splits no secret.
    fn before_any_match(&self, text: &str, mut cut: usize) -> usize {
        let found = self.matches(text);
        while let Some(split) = found.iter().find(|range| range.start < cut && cut < range.end) {
            cut = split.start;
        }
        cut
    }
}

/// Where the word that reaches up to `end` begins.
fn word_start(text: &str, end: usize) -> usize {
    let mut chars = text[..end].char_indices().rev();
    chars.find(|(_, c)| c.is_whitespace()).map_or(0, |(at, c)| at + c.len_utf8())
}

/// Redacts text that arrives in pieces: a secret split between two pieces is still found.
#[derive(Debug, Clone)]
pub struct RedactedStream {
    redactor: Redactor,
    /// Text of the line that has not ended, not yet let out.
    pending: String,
    /// An endless secret was replaced; the rest of it is dropped as it comes.
    swallowing: bool,
}

impl RedactedStream {
    /// Takes a piece and returns the whole lines that are ready, redacted.
    pub fn push(&mut self, piece: &str) -> String {
        let piece = self.swallow(piece);
        self.pending.push_str(piece);
        let ready = self.pending.rfind('\n').map_or(0, |at| at + 1);
        let mut out = self.let_out(ready);
        if self.pending.len() > HOLD_LIMIT {
            self.let_out_endless(&mut out);
        }
        out
    }

    /// Returns what of an unfinished line can be shown safely now.
    pub fn flush_partial(&mut self) -> String {
        let settled = self.redactor.settled_len(&self.pending);
        self.let_out(settled)
    }

    /// Returns the rest: nothing follows.
    pub fn finish(&mut self) -> String {
        self.let_out(self.pending.len())
    }

    /// The word that is held back, where it is letters and marks only, as words are, and begins no
    /// known secret. It may not be let out for good: it can still grow into something else.
    pub fn ordinary_word(&self) -> &str {
        let word = self.pending.as_str();
        let is_plain = |c: char| c.is_alphabetic() || ".,;:!?'\"()*`".contains(c);
        let begins_secret = self.redactor.values.iter().any(|value| {
            (4..value.len())
                .filter(|len| value.is_char_boundary(*len))
                .any(|len| word.contains(&value[..len]))
        });
        if word.chars().all(is_plain) && !begins_secret { word } else { "" }
    }

    /// True while an unfinished line waits.
    pub fn has_partial(&self) -> bool {
        !self.pending.is_empty()
    }

    fn let_out(&mut self, len: usize) -> String {
        let rest = self.pending.split_off(len);
        let mut out = std::mem::replace(&mut self.pending, rest);
        self.redactor.redact_in_place(&mut out);
        out
    }

    fn let_out_endless(&mut self, out: &mut String) {
        let cut = self.pending.floor_char_boundary(self.pending.len() - FORCED_HOLD);
        let cut = self.redactor.before_any_match(&self.pending, cut);
        if cut > 0 {
            out.push_str(&self.let_out(cut));
        }
        if self.pending.len() > HOLD_LIMIT {
            // One secret fills everything that is held: replace it and drop what still comes of it.
            out.push_str(REDACTED);
            self.pending.clear();
            self.swallowing = true;
        }
    }

    fn swallow<'t>(&mut self, piece: &'t str) -> &'t str {
        if !self.swallowing {
            return piece;
        }
        match piece.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')) {
            Some(end) => {
                self.swallowing = false;
                &piece[end..]
            }
            None => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KNOWN: &str = "planted+marker/42";

    fn redactor() -> Redactor {
        Redactor::new([KNOWN, "short", "0123456789abcdef"])
    }

    #[test]
    fn the_fixed_patterns_compile() {
        assert!(PATTERNS.is_some() && OPENING.is_some());
    }

    #[test]
    fn every_providers_key_is_known() {
        for preset in crate::api::openai::Preset::ALL {
            assert!(CREDENTIAL_VARIABLES.contains(&preset.key_variable()), "{preset:?}");
        }
    }

    #[test]
    fn secrets_are_replaced_and_ordinary_text_is_not() {
        for (input, expected) in [
            ("key planted+marker/42.", "key [redacted]."),
            ("x0123456789abcdefx", "x[redacted]x"),
            ("a short word", "a short word"),
            ("sk-ant-api03-AbCd_efgh-1", "[redacted]"),
            ("sk-proj-abcdefghijklmnopqrstuv", "[redacted]"),
            ("task-list-of-many-many-many-things", "task-list-of-many-many-many-things"),
            ("Authorization: Bearer abcdefghij.klmnopqrst-uv", "Authorization: Bearer [redacted]"),
            ("bearer authentication", "bearer authentication"),
            ("export ANTHROPIC_API_KEY=whatever-it-is", "export ANTHROPIC_API_KEY=[redacted]"),
            (r#"{"OPENAI_API_KEY": "whatever-it-is"}"#, r#"{"OPENAI_API_KEY": "[redacted]"}"#),
            ("x-api-key: whatever-it-is", "x-api-key: [redacted]"),
            ("ANTHROPIC_API_KEY=$OTHER_VARIABLE", "ANTHROPIC_API_KEY=$OTHER_VARIABLE"),
            ("unset ANTHROPIC_API_KEY", "unset ANTHROPIC_API_KEY"),
        ] {
            assert_eq!(redactor().redact(input), expected, "{input}");
        }
    }

    #[test]
    fn text_without_secrets_is_borrowed() {
        assert!(matches!(redactor().redact("cargo test: ok"), Cow::Borrowed(_)));
    }

    #[test]
    fn redacting_json_leaves_json() {
        let input =
            r#"{"command":"export ANTHROPIC_API_KEY=abcdefghijk","x":"sk-ant-aaaaaaaaaaaa"}"#;
        let parsed: serde_json::Value = serde_json::from_str(&redactor().redact(input)).unwrap();
        assert_eq!(parsed["command"], "export ANTHROPIC_API_KEY=[redacted]");
    }

    #[test]
    fn debug_shows_no_value() {
        assert!(!format!("{:?}", redactor()).contains("planted"));
    }

    #[test]
    fn a_progress_line_is_let_out_before_it_ends() {
        let mut stream = redactor().stream();
        assert_eq!(stream.push("testing ..."), "");
        assert_eq!(stream.flush_partial(), "testing ...");
        assert_eq!(stream.push("ok\n"), "ok\n");
    }

    #[test]
    fn an_endless_line_is_let_out_and_an_endless_secret_is_not() {
        let mut stream = redactor().stream();
        let mut out = String::new();
        for _ in 0..50 {
            out.push_str(&stream.push(&"y ".repeat(1000)));
        }
        assert!(out.len() > 90_000, "{}", out.len());
        let mut stream = redactor().stream();
        let mut out = stream.push("sk-ant-");
        for _ in 0..50 {
            out.push_str(&stream.push(&"Ab1".repeat(1000)));
        }
        out.push_str(&stream.push(" end"));
        out.push_str(&stream.finish());
        assert_eq!(out, "[redacted] end");
    }

    proptest! {
        #[test]
        fn any_cut_of_the_stream_gives_the_same_text(
            parts in proptest::collection::vec(prop_oneof![
                Just(KNOWN), Just("sk-ant-abcdefgh123"), Just("Bearer "), Just("abcdefghijklmnopqrstuvwx"),
                Just("XAI_API_KEY"), Just(" = "), Just("="), Just("\""), Just("\n"), Just(" "), Just("..."),
                Just("planted+"), Just("_"), Just("é"), Just("0123456789"), Just("abcdef"),
            ], 0..24),
            cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..12),
        ) {
            let whole = parts.concat();
            let mut at: Vec<(usize, bool)> = cuts
                .iter()
                .map(|(index, flush)| (whole.floor_char_boundary(index.index(whole.len() + 1)), *flush))
                .collect();
            at.sort_unstable();
            let mut stream = redactor().stream();
            let (mut out, mut from) = (String::new(), 0);
            for (to, flush) in at {
                out.push_str(&stream.push(&whole[from..to]));
                if flush {
                    out.push_str(&stream.flush_partial());
                }
                from = to;
            }
            out.push_str(&stream.push(&whole[from..]));
            out.push_str(&stream.finish());
            // Secrets that touch may merge into one mark or give one each.
            let merged = |text: &str| {
                let mut text = text.to_owned();
                while text.contains("[redacted][redacted]") {
                    text = text.replace("[redacted][redacted]", REDACTED);
                }
                text
            };
            prop_assert_eq!(merged(&out), merged(&redactor().redact(&whole)));
        }
    }
}
