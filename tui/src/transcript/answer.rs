//! The text of an answer: markdown that grows.
//!
//! While it streams, a delta costs a string append. A layout parses only what follows the last
//! *safe boundary*: the start of a block that is separated by a blank line from everything before
//! it and whose first line is whole, so that no further text can change what came earlier. Blocks
//! before it keep their lines. A text that defines link references is laid out as a whole, because
//! such a definition changes the meaning of text anywhere.

use std::borrow::Cow;

use ratatui::text::{Line, Span};

use super::cell::Env;
use super::source::Source;
use crate::markdown::wrap::{Margins, wrap_words};
use crate::markdown::{render_blocks, settled_len};
use crate::sanitise::Sanitiser;

/// An assistant's text.
#[derive(Debug)]
pub struct Answer {
    text: Source,
    /// Present while the text grows.
    stream: Option<Sanitiser>,
    /// Why the text is not whole, in words.
    mark: Option<String>,
}

/// The lines of an answer, and how far they are final.
#[derive(Debug, Default)]
pub struct AnswerLines {
    pub lines: Vec<Line<'static>>,
    /// Bytes of the source and lines that no further text can change.
    stable_bytes: usize,
    stable_lines: usize,
    /// Colours of code are still to come, in the stable part or behind it.
    stable_pending: bool,
    pub pending: bool,
}

impl Answer {
    /// An answer that begins to stream.
    pub fn live() -> Self {
        Self { text: Source::Own(String::new()), stream: Some(Sanitiser::text()), mark: None }
    }

    pub fn finished(text: Source, mark: Option<String>) -> Self {
        Self { text, stream: None, mark }
    }

    pub fn is_live(&self) -> bool {
        self.stream.is_some()
    }

    pub fn push(&mut self, delta: &str) {
        if let (Some(sanitiser), Source::Own(text)) = (&mut self.stream, &mut self.text) {
            sanitiser.push(delta, text);
        }
    }

    /// No more text will come; `mark` says why when it is not whole.
    pub fn finish(&mut self, mark: Option<String>) {
        self.stream = None;
        if mark.is_some() {
            self.mark = mark;
        }
    }

    /// The markdown source, clean.
    pub fn source(&self) -> Cow<'_, str> {
        self.text.text()
    }

    /// Brings `laid` up to date. `colours_changed` says that colours arrived since the last time.
    pub fn lay_out(&self, laid: &mut AnswerLines, env: &mut Env<'_>, colours_changed: bool) {
        if colours_changed && laid.stable_pending {
            *laid = AnswerLines::default();
        }
        let source = self.source();
        let end =
            if self.is_live() { settled_len(&source).max(laid.stable_bytes) } else { source.len() };
        let mut document = render_blocks(
            &source[laid.stable_bytes..end],
            env.width,
            env.theme,
            env.colours,
            self.is_live(),
        );
        if document.has_references && laid.stable_bytes > 0 {
            *laid = AnswerLines::default();
            document =
                render_blocks(&source[..end], env.width, env.theme, env.colours, self.is_live());
        }
        laid.lines.truncate(laid.stable_lines);
        let base = laid.stable_bytes;
        let boundary = if self.is_live() && !document.has_references {
            document.blocks.iter().rposition(|block| block.safe_start).unwrap_or(0)
        } else {
            0
        };
        laid.pending = laid.stable_pending;
        for (index, block) in document.blocks.into_iter().enumerate() {
            if index > 0 && index == boundary {
                laid.stable_bytes = base + block.start;
                laid.stable_lines = laid.lines.len();
                laid.stable_pending = laid.pending;
            }
            if block.gap || (index == 0 && !laid.lines.is_empty()) {
                laid.lines.push(Line::default());
            }
            laid.lines.extend(block.lines);
            laid.pending |= block.pending;
        }
        if let Some(mark) = &self.mark {
            let span = Span::styled(format!("— {mark}"), env.theme.warning);
            let width = usize::from(env.width);
            wrap_words(&[span], width, &Margins::default(), &mut laid.lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markdown::{PlainCode, render};
    use crate::theme::Theme;
    use proptest::prelude::*;
    use std::time::Instant;

    const WIDTH: u16 = 24;

    /// An answer with the lines of its last layout.
    struct Page {
        answer: Answer,
        laid: AnswerLines,
        theme: Theme,
    }

    impl Page {
        fn new() -> Self {
            Self { answer: Answer::live(), laid: AnswerLines::default(), theme: Theme::dark() }
        }

        fn lines(&mut self) -> &[Line<'static>] {
            let mut env = Env {
                width: WIDTH,
                theme: &self.theme,
                colours: &mut PlainCode,
                now: Instant::now(),
            };
            self.answer.lay_out(&mut self.laid, &mut env, false);
            &self.laid.lines
        }

        fn text(&mut self) -> String {
            self.lines().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        }
    }

    fn whole(source: &str) -> Vec<Line<'static>> {
        render(source, WIDTH, &Theme::dark(), &mut PlainCode)
    }

    /// What is shown while `source` streams, after all of it came.
    fn shown(source: &str) -> String {
        let mut page = Page::new();
        page.answer.push(source);
        page.text()
    }

    #[test]
    fn half_open_constructs_are_never_shown_wrongly() {
        // An open fence is code; a fence that is only being written is nothing yet.
        assert_eq!(shown("a\n\n``"), "a");
        assert_eq!(shown("a\n\n```ru"), "a");
        assert_eq!(shown("```rust\nlet x"), "rust\nlet x");
        assert_eq!(shown("```rust\nlet x\n``"), "rust\nlet x");
        // Emphasis, code and links are plain until they are closed.
        assert_eq!(shown("so **very"), "so **very");
        assert_eq!(shown("so **very**"), "so very");
        assert_eq!(shown("see `cod"), "see `cod");
        assert_eq!(shown("see [it](http:"), "see [it](http:");
        // A line under a paragraph is no heading before it is known to be one.
        assert_eq!(shown("text\n-"), "text");
        assert_eq!(shown("text\n- item"), "text\n• item");
        assert_eq!(shown("text\n1."), "text");
        assert_eq!(shown("a\n\n##"), "a");
        assert_eq!(shown("a\n\n* "), "a");
        // A table is a table from its first sight on.
        assert_eq!(shown("a\n\n| x | y"), "a");
        assert_eq!(shown("a\n\n| x | y |\n|--"), "a");
        assert_eq!(shown("a\n\n| x | y |\n|---|---|\n| v"), "a\n\nx │ y\n──┼──\nv │ ");
    }

    #[test]
    fn what_waited_is_shown_when_the_text_ends() {
        let mut page = Page::new();
        page.answer.push("a\n\n| x");
        assert_eq!(page.text(), "a");
        page.answer.finish(None);
        assert_eq!(page.text(), "a\n\n| x");
    }

    #[test]
    fn finished_blocks_are_not_laid_out_again() {
        let mut page = Page::new();
        page.answer.push("one\n\n- a\n- b\n\ntwo\nmore\n\n```\ncode\n\nmore\n");
        page.lines();
        // Everything before the open fence is final.
        assert_eq!(page.laid.stable_bytes, "one\n\n- a\n- b\n\ntwo\nmore\n\n".len());
        page.answer.push("```\n\nthree\n");
        page.lines();
        assert!(page.answer.source()[page.laid.stable_bytes..].starts_with("three"));
    }

    #[test]
    fn a_list_that_may_go_on_is_not_final() {
        let mut page = Page::new();
        page.answer.push("1. a\n\n2");
        page.lines();
        assert_eq!(page.laid.stable_bytes, 0);
        page.answer.push(". b\n\nend\n");
        assert_eq!(page.text(), "1. a\n\n2. b\n\nend");
    }

    #[test]
    fn a_reference_defined_late_changes_the_text_before_it() {
        let mut page = Page::new();
        page.answer.push("see [it]\n\nmore\n\n");
        assert_eq!(page.text(), "see [it]\n\nmore");
        page.answer.push("[it]: http://x\n\nend\n");
        assert_eq!(page.text(), "see it (http://x)\n\nmore\n\nend");
    }

    fn markdown() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "word ",
            "two words",
            "\n",
            "\n",
            "\n\n",
            "\n\n",
            "# ",
            "## head\n",
            "- item\n",
            "- ",
            "* star\n",
            "  - nested\n",
            "1. one\n",
            "2. two\n",
            "1) paren\n",
            "7",
            "> quote\n",
            "> ",
            "```\n",
            "```rust\n",
            "~~~\n",
            "    indented\n",
            "**",
            "*",
            "_",
            "`",
            "~~",
            "[text]",
            "[it](http://x.y)",
            "[it]",
            "[it]: http://z\n",
            "[^1]",
            "[^1]: note\n",
            "![i](u)",
            "| a | b |\n",
            "|---|---|\n",
            "| 1 | 2 |\n",
            "|",
            "---\n",
            "===\n",
            "-",
            "=",
            "<b>",
            "<div>\n",
            "</div>\n",
            "<!-- c -->\n",
            "- [ ] task\n",
            "- [x] done\n",
            "\\",
            "  \n",
            "\t",
            "\r\n",
            "\r",
            "漢字",
            "é",
            "👩‍👩‍👧",
            "&amp;",
            "a-long-word-that-does-not-fit-in-a-line",
            "\x1b[31m",
            "\x1b]0;t\x07",
        ]);
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn any_cut_of_the_deltas_gives_the_lines_of_one_piece(
            source in markdown(),
            cuts in prop::collection::vec(1usize..12, 0..60),
        ) {
            let mut page = Page::new();
            let chars: Vec<char> = source.chars().collect();
            let mut at = 0;
            for step in cuts {
                let end = (at + step).min(chars.len());
                page.answer.push(&chars[at..end].iter().collect::<String>());
                at = end;
                // What is shown now is what a fresh layout of the text so far shows.
                let so_far = page.answer.source().into_owned();
                let settled = settled_len(&so_far).max(page.laid.stable_bytes);
                let mut fresh = Page::new();
                fresh.answer.push(&so_far);
                prop_assert_eq!(fresh.lines(), page.lines(), "{:?}", so_far);
                prop_assert!(settled <= so_far.len());
            }
            page.answer.push(&chars[at..].iter().collect::<String>());
            page.lines();
            page.answer.finish(None);
            let clean = page.answer.source().into_owned();
            prop_assert_eq!(whole(&clean), page.lines(), "{:?}", clean);
            prop_assert_eq!(crate::sanitise::text(&source), clean);
        }

        #[test]
        fn no_line_is_wider_than_the_page(source in markdown(), width in 1u16..40) {
            for line in render(&source, width, &Theme::dark(), &mut PlainCode) {
                // A wide character alone on a line of one column is the only thing that may stick out.
                prop_assert!(line.width() <= usize::from(width.max(2)), "{:?} at {}", line, width);
            }
        }
    }
}
