//! The walk over the parser's events that turns each top-level block into lines.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::nesting::Nesting;
use super::table::Table;
use super::wrap::{Margins, truncate_end, wrap_hard, wrap_words};
use super::{Block, CodeColours, ColouredCode, Colours, Document};
use crate::sanitise;
use crate::theme::{Theme, ThemeKind};

/// The dialect: what models write.
pub const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_FOOTNOTES);

/// Lays out `source` block by block.
pub fn render(
    source: &str,
    width: usize,
    theme: &Theme,
    colours: &mut dyn CodeColours,
    open: bool,
) -> Document {
    let parser = Parser::new_ext(source, OPTIONS);
    let has_references = parser.reference_definitions().iter().next().is_some();
    let mut writer = Writer::new(source, width, theme, colours, open);
    for (event, range) in parser.into_offset_iter() {
        writer.event(event, range);
    }
    Document { blocks: writer.blocks, has_references }
}

/// The kinds of top-level blocks that matter for the space between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Paragraph,
    List,
    Other,
}

struct Writer<'a> {
    source: &'a str,
    width: usize,
    theme: &'a Theme,
    colours: &'a mut dyn CodeColours,
    open: bool,

    blocks: Vec<Block>,
    last_kind: Kind,
    /// Nesting of block tags; 0 between top-level blocks.
    depth: usize,
    start: usize,
    lines: Vec<Line<'static>>,
    pending: bool,

    nesting: Nesting,
    /// A blank line is due before the next line of the block.
    gap: bool,
    inline: Vec<Span<'a>>,
    styles: Vec<Style>,
    /// Address and where the text of the link begins in `inline`; for images with their mark.
    links: Vec<(String, usize, bool)>,
    table: Option<Table<'a>>,
    code: Option<(String, String)>,
}

impl<'a> Writer<'a> {
    fn new(
        source: &'a str,
        width: usize,
        theme: &'a Theme,
        colours: &'a mut dyn CodeColours,
        open: bool,
    ) -> Self {
        Self {
            source,
            width,
            theme,
            colours,
            open,
            blocks: Vec::new(),
            last_kind: Kind::Other,
            depth: 0,
            start: 0,
            lines: Vec::new(),
            pending: false,
            nesting: Nesting::default(),
            gap: false,
            inline: Vec::new(),
            styles: vec![theme.text],
            links: Vec::new(),
            table: None,
            code: None,
        }
    }

    fn event(&mut self, event: Event<'a>, range: Range<usize>) {
        match event {
            Event::Start(tag) => {
                if is_block(&tag) {
                    if self.depth == 0 {
                        self.start = range.start;
                    }
                    self.depth += 1;
                }
                self.open_tag(tag);
            }
            Event::End(tag) => {
                self.close_tag(tag, range.end);
                if is_block_end(tag) {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.finish_block(match tag {
                            TagEnd::Paragraph => Kind::Paragraph,
                            TagEnd::List(_) => Kind::List,
                            _ => Kind::Other,
                        });
                    }
                }
            }
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.push(text),
            },
            Event::Code(code) => self.push_code(code),
            Event::Html(html) | Event::InlineHtml(html) => self.push(html),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.push(text),
            Event::FootnoteReference(label) => self.push(format!("[^{label}]").into()),
            Event::SoftBreak => self.push(" ".into()),
            Event::HardBreak => self.push("\n".into()),
            Event::Rule => {
                if self.depth == 0 {
                    self.start = range.start;
                }
                self.put_rule();
                if self.depth == 0 {
                    self.finish_block(Kind::Other);
                }
            }
            Event::TaskListMarker(done) => self.nesting.mark_task(done),
        }
    }

    fn open_tag(&mut self, tag: Tag<'a>) {
        match tag {
            Tag::Paragraph => self.nesting.open_paragraph(),
            Tag::Heading { level, .. } => {
                self.flush();
                self.styles.push(self.theme.heading(level_number(level)));
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.fill_gap();
                self.nesting.open_quote();
                self.styles.push(self.style().patch(self.theme.quote));
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        let name = info.split([' ', ',', '{']).next().unwrap_or_default();
                        sanitise::single_line(name).into_owned()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                self.nesting.open_list(first);
            }
            Tag::Item => {
                self.flush();
                if let Some(gap) = self.nesting.open_item() {
                    self.gap = gap;
                }
            }
            Tag::FootnoteDefinition(label) => {
                self.flush();
                let label = sanitise::single_line(&label);
                self.nesting.open_marked(format!("[^{label}]: "));
            }
            Tag::Table(alignments) => {
                self.flush();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead => self.with_table(Table::start_header),
            Tag::TableRow => self.with_table(Table::start_row),
            Tag::Emphasis => self.push_style(self.theme.emphasis),
            Tag::Strong => self.push_style(self.theme.strong),
            Tag::Strikethrough => self.push_style(self.theme.strikethrough),
            Tag::Link { dest_url, .. } => {
                self.links.push((
                    sanitise::single_line(&dest_url).into_owned(),
                    self.inline.len(),
                    false,
                ));
                self.push_style(self.theme.link);
            }
            Tag::Image { dest_url, .. } => {
                self.links.push((
                    sanitise::single_line(&dest_url).into_owned(),
                    self.inline.len(),
                    true,
                ));
                self.push_style(self.theme.link);
            }
            _ => {}
        }
    }

    fn close_tag(&mut self, tag: TagEnd, end: usize) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.styles.pop();
                self.nesting.close();
                self.gap = true;
            }
            TagEnd::CodeBlock => self.put_code(end),
            TagEnd::Item => {
                self.flush();
                self.mark_empty_item();
                self.nesting.close();
            }
            TagEnd::FootnoteDefinition => {
                self.flush();
                self.nesting.close();
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.gap |= self.nesting.close_list();
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let room = self.nesting.room(self.width, self.theme);
                    let lines = table.lines(room, self.theme);
                    self.put_ready(lines);
                    self.gap = true;
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                self.with_table(|table| table.push_cell(cell));
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                self.close_link();
            }
            _ => {}
        }
    }

    /// Ends the top-level block: what was written since the last one belongs to it.
    fn finish_block(&mut self, kind: Kind) {
        self.flush();
        self.gap = false;
        let before = &self.source[..self.start];
        let blank = before[before.trim_end().len()..].matches('\n').count() >= 2;
        let tight = self.last_kind == Kind::Paragraph && kind == Kind::List && !blank;
        let first_line_whole = self.source[self.start..].contains('\n');
        let lines = std::mem::take(&mut self.lines);
        let pending = std::mem::take(&mut self.pending);
        if lines.is_empty() {
            return;
        }
        self.blocks.push(Block {
            start: self.start,
            gap: !self.blocks.is_empty() && !tight,
            lines,
            pending,
            safe_start: blank && first_line_whole && before.ends_with('\n'),
        });
        self.last_kind = kind;
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push_style(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    fn push(&mut self, text: CowStr<'a>) {
        // The source is clean, but the parser decodes entities, which can be anything.
        let text = match text {
            CowStr::Borrowed(text) => sanitise::text(text),
            text => Cow::Owned(sanitise::text(&text).into_owned()),
        };
        self.inline.push(Span::styled(text, self.style()));
    }

    fn push_code(&mut self, code: CowStr<'a>) {
        let style = self.style().patch(self.theme.code);
        // Without colours only the backticks can tell code from prose.
        let text = if self.theme.kind == ThemeKind::NoColour {
            Cow::Owned(format!("`{code}`"))
        } else {
            Cow::from(code)
        };
        self.inline.push(Span::styled(text, style));
    }

    fn close_link(&mut self) {
        let Some((address, start, image)) = self.links.pop() else {
            return;
        };
        let text: String = self.inline[start..].iter().map(|span| span.content.as_ref()).collect();
        let shown = address.strip_prefix("mailto:").unwrap_or(&address);
        let style = self.style().patch(self.theme.link_address);
        if text.is_empty() {
            self.inline.push(Span::styled(address.clone(), self.theme.link));
        } else if !address.is_empty() && text != shown {
            self.inline.push(Span::styled(format!(" ({address})"), style));
        }
        if image {
            self.inline.insert(start, Span::styled("[image] ", style));
        }
    }

    fn with_table(&mut self, act: impl FnOnce(&mut Table<'a>)) {
        if let Some(table) = &mut self.table {
            act(table);
        }
    }

    /// Writes the collected inline text, wrapped.
    fn flush(&mut self) {
        if self.inline.is_empty() || self.table.is_some() {
            return;
        }
        let mut spans = std::mem::take(&mut self.inline);
        if let Some(last) = spans.last_mut()
            && last.content.ends_with('\n')
        {
            last.content = last.content.trim_end_matches('\n').to_owned().into();
        }
        self.fill_gap();
        let margins = self.nesting.margins(self.width, self.theme);
        wrap_words(&spans, self.width, &margins, &mut self.lines);
    }

    /// An item without any text still shows its marker.
    fn mark_empty_item(&mut self) {
        let marker = self.nesting.bare_marker(self.width, self.theme);
        self.lines.extend(marker);
    }

    fn put_rule(&mut self) {
        self.flush();
        let room = self.nesting.room(self.width, self.theme).clamp(1, 40);
        self.put_ready(vec![Line::from(Span::styled("─".repeat(room), self.theme.rule))]);
        self.gap = true;
    }

    fn put_ready(&mut self, lines: Vec<Line<'static>>) {
        self.fill_gap();
        let Margins { mut first, rest } = self.nesting.margins(self.width, self.theme);
        for (index, line) in lines.into_iter().enumerate() {
            let mut spans = if index == 0 { std::mem::take(&mut first) } else { rest.clone() };
            spans.extend(line.spans);
            self.lines.push(Line::from(spans));
        }
    }

    /// Writes a code block: its lines stand at column 0 whatever it is nested in.
    fn put_code(&mut self, end: usize) {
        let Some((language, mut code)) = self.code.take() else {
            return;
        };
        self.fill_gap();
        self.mark_empty_item();
        let open = self.open && self.source[end..].trim().is_empty() && !self.is_closed(end);
        if !code.is_empty() && !code.ends_with('\n') {
            code.push('\n');
        }
        let colours = if language.is_empty() || code.is_empty() {
            Colours::Never
        } else {
            let label = truncate_end(&language, self.width);
            self.lines.push(Line::from(Span::styled(label, self.theme.code_label)));
            self.colours.colours(&language, &code, open)
        };
        let coloured = match &colours {
            Colours::Ready(code) => Some(code),
            Colours::Pending(code) => code.as_ref(),
            Colours::Never => None,
        };
        self.pending |= matches!(colours, Colours::Pending(_));
        for (index, line) in code.lines().enumerate() {
            let spans = code_spans(line, index, coloured.map(AsRef::as_ref), self.theme);
            wrap_hard(&spans, self.width, &mut self.lines);
        }
        self.gap = true;
    }

    /// Whether the fenced block that ends at `end` ends with its closing fence.
    fn is_closed(&self, end: usize) -> bool {
        let block = self.source[..end].trim_end();
        let last = block.rsplit('\n').next().unwrap_or_default().trim_start_matches([' ', '>']);
        last.len() >= 3 && (last.bytes().all(|b| b == b'`') || last.bytes().all(|b| b == b'~'))
    }

    /// Writes the blank line that is due, with the marks of the quotes around it.
    fn fill_gap(&mut self) {
        if !std::mem::take(&mut self.gap) || self.lines.is_empty() {
            return;
        }
        self.lines.push(self.nesting.blank_line(self.theme));
    }
}

/// Splits a line of code by its colours; what they do not cover is plain.
fn code_spans<'l>(
    line: &'l str,
    index: usize,
    coloured: Option<&ColouredCode>,
    theme: &Theme,
) -> Vec<Span<'l>> {
    let mut spans = Vec::new();
    let mut at = 0;
    for (len, role) in coloured.and_then(|code| code.lines.get(index)).into_iter().flatten() {
        let end = (at + *len as usize).min(line.len());
        let Some(piece) = line.get(at..end) else {
            break;
        };
        let style = theme.code_block.patch(theme.code_role(*role));
        spans.push(Span::styled(piece, style));
        at = end;
    }
    if at < line.len() {
        spans.push(Span::styled(&line[at..], theme.code_block));
    }
    spans
}

fn level_number(level: HeadingLevel) -> usize {
    level as usize
}

fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(
        tag,
        Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript
            | Tag::Link { .. }
            | Tag::Image { .. }
    )
}

fn is_block_end(tag: TagEnd) -> bool {
    !matches!(
        tag,
        TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::Link
            | TagEnd::Image
    )
}
