//! The text of an answer: markdown that grows.
//!
//! While it streams, a delta costs a string append. A layout parses only what follows the last
//! *safe boundary*: the start of a block that is separated by a blank line from everything before
//! it and whose first line is whole, so that no further text can change what came earlier. Blocks
//! before it keep their lines. A text that defines link references is laid out as a whole, because
//! such a definition changes the meaning of text anywhere.

use std::borrow::Cow;
use std::ops::Range;

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

/// The lines of a cell. For an answer also how far they are final.
#[derive(Debug, Default)]
pub struct Laid {
    pub lines: Vec<Line<'static>>,
    /// Colours of code are still to come.
    pub pending: bool,
    /// Bytes of the source and lines that no further text can change.
    stable_bytes: usize,
    stable_lines: usize,
    /// Blocks whose colours are still to come, in order.
    waiting: Vec<Waiting>,
}

/// A block that is drawn plain for now.
#[derive(Debug)]
struct Waiting {
    source: Range<usize>,
    lines: Range<usize>,
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

    /// Has no text and no mark. Stored texts never are.
    pub fn is_blank(&self) -> bool {
        matches!(&self.text, Source::Own(text) if text.trim_start().is_empty())
            && self.mark.is_none()
    }

    /// The markdown source, clean.
    pub fn source(&self) -> Cow<'_, str> {
        self.text.text()
    }

    /// Brings `laid` up to date: `grown` says that the text changed since the last time, and
    /// `coloured` that colours of code arrived.
    pub fn lay_out(&self, laid: &mut Laid, env: &mut Env<'_>, grown: bool, coloured: bool) {
        let source = self.source();
        if grown {
            self.lay_out_rest(&source, laid, env);
        }
        if coloured && !recolour(&source, laid, env, self.is_live()) {
            *laid = Laid::default();
            self.lay_out_rest(&source, laid, env);
        }
        laid.pending = !laid.waiting.is_empty();
    }

    /// Lays out what follows the last safe boundary, and moves the boundary on.
    fn lay_out_rest(&self, source: &str, laid: &mut Laid, env: &mut Env<'_>) {
        let live = self.is_live();
        let end = if live { settled_len(source).max(laid.stable_bytes) } else { source.len() };
        let rest = &source[laid.stable_bytes..end];
        let mut document = render_blocks(rest, env.width, env.theme, env.colours, live);
        if document.has_references && laid.stable_bytes > 0 {
            *laid = Laid::default();
            document = render_blocks(&source[..end], env.width, env.theme, env.colours, live);
        }
        laid.lines.truncate(laid.stable_lines);
        let stable_lines = laid.stable_lines;
        laid.waiting.retain(|block| block.lines.end <= stable_lines);
        let base = laid.stable_bytes;
        let boundary = if live && !document.has_references {
            document.blocks.iter().rposition(|block| block.safe_start).unwrap_or(0)
        } else {
            0
        };
        let mut blocks = document.blocks.into_iter().enumerate().peekable();
        while let Some((index, block)) = blocks.next() {
            if index > 0 && index == boundary {
                laid.stable_bytes = base + block.start;
                laid.stable_lines = laid.lines.len();
            }
            if block.gap || (index == 0 && !laid.lines.is_empty()) {
                laid.lines.push(Line::default());
            }
            let first = laid.lines.len();
            laid.lines.extend(block.lines);
            if block.pending {
                let next = blocks.peek().map_or(end, |(_, next)| base + next.start);
                laid.waiting.push(Waiting {
                    source: base + block.start..next,
                    lines: first..laid.lines.len(),
                });
            }
        }
        if let Some(mark) = &self.mark {
            let span = Span::styled(format!("— {mark}"), env.theme.warning);
            let width = usize::from(env.width);
            wrap_words(&[span], width, &Margins::default(), &mut laid.lines);
        }
    }
}

/// Draws the blocks again whose colours may have come, each by itself: colours change no width, so
/// the new lines take the place of the old ones. False when they do not fit there.
fn recolour(source: &str, laid: &mut Laid, env: &mut Env<'_>, live: bool) -> bool {
    let mut fits = true;
    let end = laid.lines.len();
    let lines = &mut laid.lines;
    laid.waiting.retain(|waiting| {
        let whole_lines = waiting.source.start == 0
            || source.as_bytes().get(waiting.source.start - 1) == Some(&b'\n');
        let Some(source) = source.get(waiting.source.clone()).filter(|_| whole_lines) else {
            fits = false;
            return false;
        };
        let open = live && waiting.lines.end == end;
        let mut document = render_blocks(source, env.width, env.theme, env.colours, open);
        let block = (document.blocks.len() == 1).then(|| document.blocks.pop()).flatten();
        match block {
            Some(block) if block.lines.len() == waiting.lines.len() => {
                for (line, new) in lines[waiting.lines.clone()].iter_mut().zip(block.lines) {
                    *line = new;
                }
                block.pending
            }
            _ => {
                fits = false;
                false
            }
        }
    });
    fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markdown::{CodeColours, ColouredCode, Colours, PlainCode, render};
    use crate::theme::{CodeRole, Theme};
    use proptest::prelude::*;
    use std::sync::Arc;

    const WIDTH: u16 = 24;

    /// An answer with the lines of its last layout.
    struct Page {
        answer: Answer,
        laid: Laid,
        theme: Theme,
    }

    impl Page {
        fn new() -> Self {
            Self { answer: Answer::live(), laid: Laid::default(), theme: Theme::dark() }
        }

        fn lay_out(&mut self, colours: &mut dyn CodeColours, grown: bool, coloured: bool) {
            let mut env = Env { width: WIDTH, theme: &self.theme, colours, now: None };
            self.answer.lay_out(&mut self.laid, &mut env, grown, coloured);
        }

        fn lines(&mut self) -> &[Line<'static>] {
            self.lay_out(&mut PlainCode, true, false);
            &self.laid.lines
        }

        fn text(&mut self) -> String {
            self.lines().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        }
    }

    /// Code gets its colours the second time it is asked for.
    #[derive(Default)]
    struct Slow {
        asked: Vec<(String, bool)>,
        answers: usize,
    }

    impl CodeColours for Slow {
        fn colours(&mut self, _language: &str, code: &str, open: bool) -> Colours {
            self.answers += 1;
            let known = self.asked.contains(&(code.to_owned(), open));
            if known && !open {
                return Colours::Ready(keywords(code));
            }
            self.asked.push((code.to_owned(), open));
            Colours::Pending(known.then(|| keywords(code)))
        }
    }

    struct Instantly;

    impl CodeColours for Instantly {
        fn colours(&mut self, _language: &str, code: &str, _open: bool) -> Colours {
            Colours::Ready(keywords(code))
        }
    }

    fn keywords(code: &str) -> Arc<ColouredCode> {
        let lines = code.lines().map(|_| vec![(3, CodeRole::Keyword)]).collect();
        Arc::new(ColouredCode { lines })
    }

    #[test]
    fn only_the_blocks_that_wait_are_drawn_again_when_colours_come() {
        let block = "```rust\nlet x = 1;\n```\n\ntext\n\n";
        let mut page = Page::new();
        let mut slow = Slow::default();
        page.answer.push(&block.repeat(50));
        page.lay_out(&mut slow, true, true);
        page.lay_out(&mut slow, false, true);
        let answers = slow.answers;
        assert!(!page.laid.pending);
        page.answer.push(block);
        page.lay_out(&mut slow, true, true);
        assert!(slow.answers - answers <= 3, "{}", slow.answers - answers);
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
        fn colours_that_come_later_end_in_the_same_lines(
            source in markdown(),
            cuts in prop::collection::vec(1usize..40, 0..20),
        ) {
            let source = source.replace("```\n", "```sh\nlet it\n```\n");
            let mut page = Page::new();
            let mut slow = Slow::default();
            let chars: Vec<char> = source.chars().collect();
            let mut at = 0;
            for step in cuts {
                let end = (at + step).min(chars.len());
                page.answer.push(&chars[at..end].iter().collect::<String>());
                at = end;
                page.lay_out(&mut slow, true, true);
            }
            page.answer.push(&chars[at..].iter().collect::<String>());
            page.answer.finish(None);
            page.lay_out(&mut slow, true, false);
            for _ in 0..3 {
                page.lay_out(&mut slow, false, true);
            }
            prop_assert!(!page.laid.pending);
            let clean = page.answer.source().into_owned();
            let expected = render(&clean, WIDTH, &Theme::dark(), &mut Instantly);
            prop_assert_eq!(expected, page.laid.lines, "{:?}", clean);
        }

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
