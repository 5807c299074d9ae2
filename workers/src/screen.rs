//! What a worker's terminal shows: its output becomes a grid of cells, a title and some modes, in
//! bounded memory.
//!
//! It answers none of the questions that a program asks its terminal, and keeps nothing of what has
//! scrolled away but the end of the raw output, for messages. Its texts are as the program sent
//! them: whoever draws them sanitises them.

use std::collections::VecDeque;
use std::num::NonZeroU16;

use claw_runtime::sequences::strip_sequences;
use vt100::{Callbacks, MouseProtocolEncoding, MouseProtocolMode, Parser};

use crate::config::WindowSize;

/// Bytes of raw output that are kept.
const TAIL: usize = 64 * 1024;
/// A title is cut here, in characters.
const LONGEST_TITLE: usize = 200;
/// The parser collects an operating system command until its end; one without end is cut here.
const LONGEST_SEQUENCE: usize = 256 * 1024;
/// CAN: ends any sequence, and means nothing outside of one.
const CANCEL: &[u8] = b"\x18";
/// Larger screens are not drawn by anybody and cost memory.
const LARGEST: u16 = 1000;

/// The screen of one terminal.
pub struct Screen {
    parser: Parser<Title>,
    tail: VecDeque<u8>,
    /// Bytes since the last one that can end a sequence.
    unended: usize,
    /// The first bytes of a character whose others have not come: the parser mixes up the order of
    /// what it gets in such pieces.
    begun: Vec<u8>,
}

impl Screen {
    pub fn new(size: WindowSize) -> Self {
        let (rows, columns) = dimensions(size);
        Self {
            parser: Parser::new_with_callbacks(rows, columns, 0, Title::default()),
            tail: VecDeque::new(),
            unended: 0,
            begun: Vec::new(),
        }
    }

    /// Takes output in, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.keep(bytes);
        if self.begun.is_empty() {
            self.feed_characters(bytes);
        } else {
            let mut joined = std::mem::take(&mut self.begun);
            joined.extend_from_slice(bytes);
            self.feed_characters(&joined);
        }
    }

    fn feed_characters(&mut self, bytes: &[u8]) {
        let (bytes, begun) = bytes.split_at(bytes.len() - begun_at_end(bytes));
        self.begun.extend_from_slice(begun);
        if self.unended + bytes.len() <= LONGEST_SEQUENCE {
            self.parser.process(bytes);
            let last = bytes.iter().rposition(|byte| can_end(*byte));
            self.unended = last.map_or(self.unended + bytes.len(), |last| bytes.len() - last - 1);
            return;
        }
        for piece in bytes.split_inclusive(|byte| can_end(*byte)) {
            self.feed_piece(piece);
        }
    }

    /// A piece in which only the last byte can end a sequence.
    fn feed_piece(&mut self, mut piece: &[u8]) {
        while self.unended + piece.len() > LONGEST_SEQUENCE {
            let (fits, rest) = piece.split_at(LONGEST_SEQUENCE - self.unended);
            self.parser.process(fits);
            self.parser.process(CANCEL);
            self.unended = 0;
            piece = rest;
        }
        self.parser.process(piece);
        let ends = piece.last().is_some_and(|byte| can_end(*byte));
        self.unended = if ends { 0 } else { self.unended + piece.len() };
    }

    fn keep(&mut self, bytes: &[u8]) {
        let new = &bytes[bytes.len().saturating_sub(TAIL)..];
        let over = (self.tail.len() + new.len()).saturating_sub(TAIL);
        self.tail.drain(..over);
        self.tail.extend(new);
    }

    pub fn resize(&mut self, size: WindowSize) {
        let (rows, columns) = dimensions(size);
        self.parser.set_size(rows, columns);
    }

    /// The lines on the screen, without trailing blanks and without empty lines at the end.
    pub fn text(&self) -> String {
        let (_, columns) = self.parser.screen().size();
        let rows: Vec<String> = self
            .parser
            .screen()
            .rows(0, columns.get())
            .map(|row| row.trim_end().to_owned())
            .collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// The last 64 KiB of output as text, without control sequences.
    pub fn tail(&self) -> String {
        let bytes: Vec<u8> = self.tail.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let kept = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        strip_sequences(&text).chars().filter(kept).collect()
    }

    pub fn title(&self) -> &str {
        &self.parser.callbacks().0
    }

    /// All that is needed to draw it.
    pub fn view(&self) -> ScreenView {
        let screen = self.parser.screen();
        let (rows, columns) = screen.size();
        let (rows, columns) = (rows.get(), columns.get());
        let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let cell = |(row, column)| screen.cell(row, column).map(ScreenCell::of).unwrap_or_default();
        let (row, column) = screen.cursor_position();
        ScreenView {
            columns,
            rows,
            cells: places.map(cell).collect(),
            cursor: (!screen.hide_cursor()).then_some((column.min(columns - 1), row.min(rows - 1))),
            application_cursor: screen.application_cursor(),
            bracketed_paste: screen.bracketed_paste(),
            mouse: Mouse::of(screen),
            title: self.title().to_owned(),
            alternate: screen.alternate_screen(),
        }
    }
}

/// Rows and columns.
fn dimensions(size: WindowSize) -> (NonZeroU16, NonZeroU16) {
    let clamped = |cells: u16| NonZeroU16::new(cells.min(LARGEST)).unwrap_or(NonZeroU16::MIN);
    (clamped(size.rows), clamped(size.columns))
}

/// BEL, CAN, SUB and ESC.
fn can_end(byte: u8) -> bool {
    matches!(byte, 0x07 | 0x18 | 0x1a | 0x1b)
}

/// How many bytes at the end begin a character without completing it.
fn begun_at_end(bytes: &[u8]) -> usize {
    let length = |first: u8| match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let last = bytes.iter().rev().take(3);
    let first = last.enumerate().find(|(_, byte)| !matches!(byte, 0x80..=0xbf));
    first.map_or(0, |(after, byte)| if length(*byte) > after + 1 { after + 1 } else { 0 })
}

/// The last title that the program set.
#[derive(Default)]
struct Title(String);

impl Callbacks for Title {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.0 = String::from_utf8_lossy(title).chars().take(LONGEST_TITLE).collect();
    }
}

/// A screen at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenView {
    pub columns: u16,
    pub rows: u16,
    /// Row by row, `columns * rows` of them.
    pub cells: Vec<ScreenCell>,
    /// Column and row, from 0. None while it is hidden.
    pub cursor: Option<(u16, u16)>,
    /// Arrow keys are to be sent as `ESC O A` instead of `ESC [ A`.
    pub application_cursor: bool,
    pub bracketed_paste: bool,
    /// None when the program wants to know nothing of the mouse.
    pub mouse: Option<Mouse>,
    pub title: String,
    /// True for a full-screen program.
    pub alternate: bool,
}

impl ScreenView {
    pub fn cell(&self, column: u16, row: u16) -> Option<&ScreenCell> {
        let inside = column < self.columns && row < self.rows;
        let at = usize::from(row) * usize::from(self.columns) + usize::from(column);
        inside.then(|| self.cells.get(at)).flatten()
    }
}

/// What a program wants to know of the mouse besides its buttons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mouse {
    /// Movement while a button is held.
    pub drags: bool,
    /// All movement.
    pub moves: bool,
    /// Reports are `CSI < ... M`; otherwise of the old form with single bytes.
    pub sgr: bool,
}

impl Mouse {
    fn of(screen: &vt100::Screen) -> Option<Self> {
        let sgr = screen.mouse_protocol_encoding() == MouseProtocolEncoding::Sgr;
        let (drags, moves) = match screen.mouse_protocol_mode() {
            MouseProtocolMode::None => return None,
            MouseProtocolMode::Press | MouseProtocolMode::PressRelease => (false, false),
            MouseProtocolMode::ButtonMotion => (true, false),
            MouseProtocolMode::AnyMotion => (true, true),
        };
        Some(Self { drags, moves, sgr })
    }
}

/// One place on a screen. A wide one is followed by one without text that belongs to it.
#[expect(clippy::struct_excessive_bools, reason = "the attributes of a cell are independent")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScreenCell {
    pub text: CellText,
    pub fg: ScreenColour,
    pub bg: ScreenColour,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub inverse: bool,
    pub wide: bool,
}

impl ScreenCell {
    fn of(cell: &vt100::Cell) -> Self {
        Self {
            text: CellText::of(cell.contents()),
            fg: ScreenColour::of(cell.fgcolor()),
            bg: ScreenColour::of(cell.bgcolor()),
            bold: cell.bold(),
            dim: cell.dim(),
            italic: cell.italic(),
            underline: cell.underline(),
            inverse: cell.inverse(),
            wide: cell.is_wide(),
        }
    }
}

/// A character with what combines with it, or nothing. As long as the terminal keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct CellText {
    bytes: [u8; 22],
    length: u8,
}

impl CellText {
    fn of(text: &str) -> Self {
        let mut new = Self::default();
        let end = text.floor_char_boundary(new.bytes.len());
        new.bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        new.length = end as u8;
        new
    }

    /// Empty for a blank.
    pub fn as_str(&self) -> &str {
        // Always text: it was made from some.
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl std::fmt::Debug for CellText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

/// A colour as the program named it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScreenColour {
    #[default]
    Default,
    Indexed(u8),
    Rgb(u8, u8, u8),
}

impl ScreenColour {
    fn of(colour: vt100::Color) -> Self {
        match colour {
            vt100::Color::Default => Self::Default,
            vt100::Color::Idx(index) => Self::Indexed(index),
            vt100::Color::Rgb(red, green, blue) => Self::Rgb(red, green, blue),
        }
    }
}

#[cfg(test)]
mod tests;
