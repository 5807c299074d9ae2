//! How long frames take, and how many bytes they are, while a long answer streams and after it.
//! Run it by hand:
//!
//! ```sh
//! cargo run --release -p claw-tui --example frames
//! ```
//!
//! Times are printed, not asserted: they belong to the machine.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use claw_runtime::TuiEvent;
use claw_runtime::session::{ContentBlock, ConversationMessage, MessageRole, SessionView};
use claw_tui::markdown::Highlighter;
use claw_tui::terminal::screen::Screen;
use claw_tui::theme::Theme;
use claw_tui::transcript::Transcript;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const AREA: Rect = Rect { x: 0, y: 0, width: 120, height: 40 };

/// Bytes of a token, about.
const TOKEN: usize = 4;

/// Markdown of all kinds, `tokens` long.
fn answer(tokens: usize) -> String {
    let mut source = String::new();
    let mut part = 0;
    while source.len() < tokens * TOKEN {
        part += 1;
        let _ = write!(
            source,
            "## Part {part}\n\nSome **bold** prose with `code`, a [link](https://example.org/{part}) \
             and enough words that it has to wrap at least once on a usual screen.\n\n\
             - one item\n- another *item*\n  - nested\n\n\
             ```rust\nfn part_{part}(input: &str) -> usize {{\n    // counts\n    input.len() + {part}\n}}\n```\n\n\
             | name | value |\n|------|------:|\n| a | {part} |\n| b | 2 |\n\n"
        );
    }
    source
}

fn line(text: &str) {
    // Nothing sensible can be done when the terminal does not take it.
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a share of a few thousand"
        )]
        let index = ((times.len() - 1) as f64 * share) as usize;
        times[index]
    };
    let sum: Duration = times.iter().sum();
    line(&format!(
        "{name:32} {:6} x   p50 {:9.1?}   p99 {:9.1?}   max {:9.1?}   sum {sum:9.1?}",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0),
    ));
}

/// What the transcript is drawn on: the program's own screen, which also makes the bytes.
struct Stage {
    screen: Screen,
    bytes: usize,
}

impl Stage {
    fn new() -> io::Result<Self> {
        Ok(Self { screen: Screen::new((AREA.width, AREA.height))?, bytes: 0 })
    }

    /// Draws a frame and says how long that took, bytes included.
    fn timed(&mut self, transcript: &mut Transcript) -> io::Result<Duration> {
        let begun = Instant::now();
        let frame = self.screen.draw(|frame| {
            transcript.draw(begun, AREA, frame.buffer_mut());
        })?;
        self.bytes += frame.map_or(0, |frame| frame.len());
        Ok(begun.elapsed())
    }

    fn times(&mut self, transcript: &mut Transcript, frames: usize) -> io::Result<Vec<Duration>> {
        (0..frames).map(|_| self.timed(transcript)).collect()
    }
}

/// Streams `source` with `deltas` tokens between two frames.
fn stream(name: &str, source: &str, deltas: usize) -> io::Result<Transcript> {
    let mut transcript = Transcript::new(Theme::dark());
    transcript.set_highlighter(Box::new(Highlighter::new(Arc::new(|| ()))));
    let mut stage = Stage::new()?;
    let mut frames = Vec::new();
    let mut apply = Duration::ZERO;
    let chars: Vec<char> = source.chars().collect();
    for frame in chars.chunks(TOKEN * deltas) {
        let events: Vec<TuiEvent> = frame
            .chunks(TOKEN)
            .map(|delta| TuiEvent::TextDelta { text: delta.iter().collect() })
            .collect();
        let begun = Instant::now();
        for event in &events {
            transcript.apply(begun, event);
        }
        apply += begun.elapsed();
        frames.push(stage.timed(&mut transcript)?);
    }
    report(name, frames);
    line(&format!("{:32} all deltas applied in {apply:.1?}, {} bytes written", "", stage.bytes));
    Ok(transcript)
}

/// A transcript of about this many lines, in answers of twenty.
fn of_lines(lines: usize) -> Transcript {
    let mut transcript = Transcript::new(Theme::dark());
    let now = Instant::now();
    for number in 0..lines.div_ceil(22) {
        transcript.apply(now, &TuiEvent::TextDelta { text: "a line of text\n\n".repeat(10) });
        transcript.apply(now, &TuiEvent::info(format!("notice {number}")));
    }
    transcript
}

fn long_session() -> SessionView {
    let text = answer(1000);
    let messages = (0..2000).map(|index| {
        let block = ContentBlock::Text { text: format!("# Message {index}\n\n{text}") };
        let role = if index % 2 == 0 { MessageRole::User } else { MessageRole::Assistant };
        Arc::new(ConversationMessage::new(role, vec![block]))
    });
    SessionView {
        id: "session".to_owned(),
        path: "session.jsonl".into(),
        fork: None,
        messages: messages.collect(),
        prompt_history: Vec::new(),
        warnings: Vec::new(),
        resumed: true,
    }
}

fn main() -> io::Result<()> {
    let source = answer(20_000);
    line(&format!("{} bytes of markdown", source.len()));
    stream("one token a frame", &source, 1)?;
    let mut transcript = stream("170 tokens a frame (10,000/s)", &source, 170)?;
    let code = format!("```rust\n{}", "let x = \"y\"; // z\n".repeat(4000));
    stream("one open code block", &code, 20)?;
    let list = "- an item of one endless list with some words\n".repeat(1700);
    stream("one endless list", &list, 20)?;

    let mut stage = Stage::new()?;
    report("unchanged frame", stage.times(&mut transcript, 200)?);
    let frames = (0..200).map(|_| {
        transcript.scroll_lines(-3);
        stage.timed(&mut transcript)
    });
    report("scrolled by 3", frames.collect::<io::Result<_>>()?);
    let frames = (0..50).map(|step| {
        let area = Rect { width: 70 + step * 13 % 50, ..AREA };
        let begun = Instant::now();
        transcript.draw(begun, area, &mut Buffer::empty(area));
        begun.elapsed()
    });
    report("another width", frames.collect());

    for lines in [100, 100_000] {
        let mut transcript = of_lines(lines);
        let mut stage = Stage::new()?;
        report(&format!("at the end of {lines} lines"), stage.times(&mut transcript, 500)?);
    }

    let view = long_session();
    let begun = Instant::now();
    let mut transcript = Transcript::new(Theme::dark());
    transcript.load(&view);
    line(&format!("2,000 messages loaded in {:.1?}", begun.elapsed()));
    let mut stage = Stage::new()?;
    report("their first frame", stage.times(&mut transcript, 1)?);
    let frames = (0..500).map(|_| {
        transcript.page_up();
        stage.timed(&mut transcript)
    });
    report("page up", frames.collect::<io::Result<_>>()?);
    Ok(())
}
