//! One piece of the transcript: what it holds, and its one cache of lines.

use std::time::Instant;

use claw_runtime::NoticeLevel;
use ratatui::text::{Line, Span};

use super::answer::{Answer, Laid};
use super::source::Source;
use super::thinking::Thinking;
use super::tool::Tool;
use crate::markdown::wrap::{Margins, truncate_start, wrap_words};
use crate::markdown::{CodeColours, render_blocks};
use crate::theme::Theme;

/// Lines of a long prompt that are shown before it is opened.
const PROMPT_LINES: usize = 20;

/// What is shown of a message without any content.
const EMPTY_ANSWER: &str = "(empty answer)";

/// What a layout depends on besides the cell.
pub struct Env<'a> {
    pub width: u16,
    pub theme: &'a Theme,
    pub colours: &'a mut dyn CodeColours,
    /// None before the first frame.
    pub now: Option<Instant>,
}

/// What the cache of a cell was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub width: u16,
    /// Counts theme changes.
    pub theme: u32,
    pub expanded: bool,
    /// Whole seconds that a running tool shows.
    pub seconds: u64,
}

/// What is drawn.
#[derive(Debug)]
pub enum Content {
    /// A prompt.
    User {
        text: Source,
        standing: Standing,
    },
    Answer(Answer),
    Thinking(Thinking),
    Tool(Box<Tool>),
    Notice {
        level: NoticeLevel,
        text: String,
    },
    /// The answer to a command.
    Reply {
        title: String,
        markdown: String,
    },
    /// The model sent a message without any content.
    EmptyAnswer,
    /// Earlier messages were replaced by a summary, which can be opened if it is known.
    Compaction {
        text: String,
        /// The file that holds the conversation as it was, as far as it is known.
        original: Option<String>,
        summary: Option<Source>,
    },
}

/// One piece of the transcript.
#[derive(Debug)]
pub struct Cell {
    pub content: Content,
    /// Opened or closed by the person; none follows the setting for its kind.
    pub expanded: Option<bool>,
    cache: Option<Cache>,
    /// Frame in which it was drawn last.
    pub last_drawn: u64,
}

#[derive(Debug)]
struct Cache {
    key: Key,
    colours: u64,
    /// The content changed since.
    stale: bool,
    laid: Laid,
}

impl Cell {
    pub fn new(content: Content) -> Self {
        Self { content, expanded: None, cache: None, last_drawn: 0 }
    }

    /// The content changed: the lines are worked out again when they are needed.
    pub fn touch(&mut self) {
        if let Some(cache) = &mut self.cache {
            cache.stale = true;
        }
    }

    pub fn drop_lines(&mut self) {
        self.cache = None;
    }

    /// The lines as they were last laid out, whatever for.
    pub fn cached(&self) -> Option<&[Line<'static>]> {
        self.cache.as_ref().map(|cache| cache.laid.lines.as_slice())
    }

    /// Whether `lines` would have to work.
    pub fn is_laid_out(&self, key: Key, colours: u64) -> bool {
        self.cache.as_ref().is_some_and(|cache| {
            cache.key == key && !cache.stale && !(cache.laid.pending && cache.colours != colours)
        })
    }

    /// Lays the cell out unless its lines are up to date.
    pub fn lay_out(&mut self, key: Key, colours: u64, env: &mut Env<'_>) -> &[Line<'static>] {
        let reusable = self.cache.take().filter(|cache| cache.key == key);
        let mut cache =
            reusable.unwrap_or_else(|| Cache { key, colours, stale: true, laid: Laid::default() });
        let colours_changed = cache.colours != colours;
        let coloured = cache.laid.pending && colours_changed;
        if cache.stale || coloured {
            match &self.content {
                Content::Answer(answer) => {
                    answer.lay_out(&mut cache.laid, env, cache.stale, coloured);
                }
                other => {
                    cache.laid = Laid::default();
                    lay_out(other, key.expanded, env, &mut cache.laid);
                }
            }
            cache.stale = false;
            cache.colours = colours;
        }
        &self.cache.insert(cache).laid.lines
    }

    /// Whether opening and closing it makes a difference.
    pub fn is_collapsible(&self) -> bool {
        match &self.content {
            Content::Thinking(thinking) => thinking.is_collapsible(),
            Content::Tool(_) => true,
            Content::Compaction { summary, .. } => summary.is_some(),
            Content::User { text, .. } => text.text().lines().nth(PROMPT_LINES).is_some(),
            Content::Answer(_)
            | Content::EmptyAnswer
            | Content::Notice { .. }
            | Content::Reply { .. } => false,
        }
    }

    /// Has nothing to show: models send blank text between tool calls.
    pub fn is_blank(&self) -> bool {
        matches!(&self.content, Content::Answer(answer) if answer.is_blank())
    }

    /// Stands close to its like: no blank line between them.
    pub fn is_compact(&self) -> bool {
        matches!(self.content, Content::Tool(_) | Content::Thinking(_))
    }

    /// The text that copying the cell gives.
    pub fn copy_text(&self) -> String {
        match &self.content {
            Content::User { text, .. } => text.text().into_owned(),
            Content::Answer(answer) => answer.source().into_owned(),
            Content::Thinking(thinking) => thinking.text().into_owned(),
            Content::Tool(tool) => tool.copy_text(),
            Content::Notice { text, .. } => text.clone(),
            Content::Reply { markdown, .. } => markdown.clone(),
            Content::EmptyAnswer => String::new(),
            Content::Compaction { text, original, summary } => match (summary, original) {
                (Some(summary), _) => summary.text().into_owned(),
                (None, Some(original)) => format!("{text} {original}"),
                (None, None) => text.clone(),
            },
        }
    }
}

/// Where a prompt stands that may have been given while a turn ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It began a turn of its own.
    Begun,
    /// It waits for the end of the turn.
    Queued,
    /// It is on its way into the running turn.
    Sending,
    /// It went into the turn that ran.
    Taken,
    /// It was sent, and nothing shows that it was taken.
    Uncertain,
}

impl Standing {
    /// It stands at the end, whatever else comes.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::Queued | Self::Sending)
    }

    fn words(self) -> Option<&'static str> {
        match self {
            Self::Begun => None,
            Self::Queued => Some("queued"),
            Self::Sending => Some("on its way into this turn"),
            Self::Taken => Some("said into this turn"),
            Self::Uncertain => Some("not certain to have arrived; it is not sent again"),
        }
    }
}

fn lay_out(content: &Content, expanded: bool, env: &mut Env<'_>, laid: &mut Laid) {
    match content {
        Content::Answer(answer) => answer.lay_out(laid, env, true, false),
        Content::Thinking(thinking) => thinking.lay_out(expanded, env, &mut laid.lines),
        Content::Tool(tool) => tool.lay_out(expanded, env, &mut laid.lines),
        Content::User { text, standing } => user(&text.text(), *standing, expanded, env, laid),
        Content::Notice { level, text } => {
            let (mark, style) = match level {
                NoticeLevel::Info => ("· ", env.theme.info),
                NoticeLevel::Warning => ("! ", env.theme.warning),
                NoticeLevel::Error => ("✗ ", env.theme.error),
            };
            marked(mark, text, style, style, env, &mut laid.lines);
        }
        Content::Reply { title, markdown } => {
            if !title.is_empty() {
                let title = Span::styled(title.clone(), env.theme.title);
                let width = usize::from(env.width);
                wrap_words(&[title], width, &Margins::default(), &mut laid.lines);
            }
            blocks(markdown, env, laid);
        }
        Content::EmptyAnswer => {
            laid.lines.push(Line::styled(EMPTY_ANSWER, env.theme.dim));
        }
        Content::Compaction { text, original, summary } => {
            let mark = match (summary.is_some(), expanded) {
                (false, _) => "─ ",
                (true, false) => "▸ ",
                (true, true) => "▾ ",
            };
            marked(mark, text, env.theme.dim, env.theme.dim, env, &mut laid.lines);
            if let Some(original) = original {
                // The name comes last, and a path in pieces is no path.
                let path = truncate_start(original, usize::from(env.width).saturating_sub(2));
                laid.lines.push(Line::styled(format!("  {path}"), env.theme.dim));
            }
            if let (Some(summary), true) = (summary, expanded) {
                marked("  ", &summary.text(), env.theme.dim, env.theme.dim, env, &mut laid.lines);
            }
        }
    }
}

fn blocks(source: &str, env: &mut Env<'_>, laid: &mut Laid) {
    let document = render_blocks(source, env.width, env.theme, env.colours, false);
    for block in document.blocks {
        if block.gap {
            laid.lines.push(Line::default());
        }
        laid.lines.extend(block.lines);
        laid.pending |= block.pending;
    }
}

fn user(text: &str, standing: Standing, expanded: bool, env: &mut Env<'_>, laid: &mut Laid) {
    let style = if standing.is_waiting() { env.theme.dim } else { env.theme.user };
    let total = text.lines().count();
    let hidden = if expanded { 0 } else { total.saturating_sub(PROMPT_LINES) };
    let shown = if hidden > 0 {
        text.lines().take(PROMPT_LINES).collect::<Vec<_>>().join("\n")
    } else {
        text.trim_end_matches('\n').to_owned()
    };
    marked("> ", &shown, env.theme.user_marker, style, env, &mut laid.lines);
    if hidden > 0 {
        let more = format!("… {hidden} more lines");
        marked("  ", &more, env.theme.dim, env.theme.dim, env, &mut laid.lines);
    }
    if let Some(words) = standing.words() {
        let style = if standing == Standing::Uncertain { env.theme.warning } else { env.theme.dim };
        marked("  ", words, style, style, env, &mut laid.lines);
    }
}

/// Wrapped text with a mark in the two columns before its first line.
pub fn marked(
    mark: &str,
    text: &str,
    mark_style: ratatui::style::Style,
    style: ratatui::style::Style,
    env: &Env<'_>,
    out: &mut Vec<Line<'static>>,
) {
    let margins = Margins {
        first: vec![Span::styled(mark.to_owned(), mark_style)],
        rest: vec![Span::raw("  ")],
    };
    wrap_words(&[Span::styled(text, style)], usize::from(env.width), &margins, out);
}
