//! What a terminal would know after reading the program's output: the grid, and every mode that was
//! switched on or off.
//!
//! The grid is vt100's. The modes are followed here, because a test must also see what that
//! emulator does not know: the keyboard stack, the title stack, synchronized frames, and whether
//! the scrollback was ever cleared.

use std::collections::BTreeSet;
use std::num::NonZeroU16;

/// The modes of a terminal. Two are equal when a person would find the same terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modes {
    /// Private modes (DECSET) that are on; 25 is the visible cursor.
    pub private: BTreeSet<u16>,
    /// Stacks of keyboard flags, of the main and of the alternate screen.
    pub keyboard: [Vec<u32>; 2],
    pub modify_other_keys: u32,
    pub title: String,
    pub saved_titles: Vec<String>,
}

impl Default for Modes {
    fn default() -> Self {
        Self {
            private: BTreeSet::from([25]),
            keyboard: [Vec::new(), Vec::new()],
            modify_other_keys: 0,
            title: "shell".to_owned(),
            saved_titles: Vec::new(),
        }
    }
}

impl Modes {
    /// True when this private mode is on.
    pub fn has(&self, mode: u16) -> bool {
        self.private.contains(&mode)
    }
}

#[derive(Debug)]
enum State {
    Ground,
    Escape,
    Csi(String),
    /// A string (OSC, DCS, ...) until BEL or ESC \; true after its ESC.
    Text(char, String, bool),
}

/// Follows the output of a program.
pub struct Screen {
    grid: vt100::Parser,
    state: State,
    pub modes: Modes,
    /// How often the scrollback was cleared (ED 3). Must stay 0.
    pub scrollback_clears: usize,
    /// How often the whole visible screen was cleared (ED 2).
    pub full_clears: usize,
    /// What was sent to the clipboard (OSC 52), as base64.
    pub clipboard: Vec<String>,
}

impl Screen {
    /// A blank screen of this many columns and rows, with some scrollback.
    pub fn new(columns: u16, rows: u16) -> Self {
        Self {
            grid: vt100::Parser::new(size(rows), size(columns), 10_000),
            state: State::Ground,
            modes: Modes::default(),
            scrollback_clears: 0,
            full_clears: 0,
            clipboard: Vec::new(),
        }
    }

    /// Takes output, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.grid.process(bytes);
        for &byte in bytes {
            self.step(char::from(byte));
        }
    }

    /// Changes the size as a terminal window would.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.grid.set_size(size(rows), size(columns));
    }

    /// The visible text, row by row, without trailing blanks.
    pub fn text(&self) -> String {
        let columns = self.grid.screen().size().1.get();
        let rows = self.grid.screen().rows(0, columns).map(|row| row.trim_end().to_owned());
        rows.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// Column and row of the hardware cursor, from 0.
    pub fn cursor(&self) -> (u16, u16) {
        let (row, column) = self.grid.screen().cursor_position();
        (column, row)
    }

    fn step(&mut self, c: char) {
        let state = std::mem::replace(&mut self.state, State::Ground);
        self.state = match (state, c) {
            (State::Ground | State::Escape, '\x1b') => State::Escape,
            (State::Ground, _) => State::Ground,
            (State::Escape, '[') => State::Csi(String::new()),
            (State::Escape, ']' | 'P' | '_' | '^') => State::Text(c, String::new(), false),
            (State::Escape, _) => State::Ground,
            (State::Csi(parameters), '\x40'..='\x7e') => {
                self.csi(&parameters, c);
                State::Ground
            }
            (State::Csi(mut parameters), _) => {
                parameters.push(c);
                State::Csi(parameters)
            }
            (State::Text(kind, text, _), '\x07') => self.end_text(kind, &text),
            (State::Text(kind, text, true), '\\') => self.end_text(kind, &text),
            (State::Text(kind, text, _), '\x1b') => State::Text(kind, text, true),
            (State::Text(kind, mut text, _), _) => {
                text.push(c);
                State::Text(kind, text, false)
            }
        };
    }

    fn end_text(&mut self, kind: char, text: &str) -> State {
        if kind == ']' {
            match text.split_once(';') {
                Some(("0" | "2", title)) => title.clone_into(&mut self.modes.title),
                Some(("52", data)) => self.clipboard.push(data.to_owned()),
                _ => {}
            }
        }
        State::Ground
    }

    fn csi(&mut self, parameters: &str, end: char) {
        let (mark, rest) = match parameters.chars().next() {
            Some(mark @ ('?' | '>' | '<' | '=')) => (mark, &parameters[1..]),
            _ => (' ', parameters),
        };
        let numbers: Vec<u32> = rest.split(';').map(|n| n.parse().unwrap_or(0)).collect();
        let first = numbers[0];
        let keyboard = &mut self.modes.keyboard[usize::from(self.modes.private.contains(&1049))];
        match (mark, end) {
            ('?', 'h') => self.modes.private.extend(numbers.iter().map(|n| *n as u16)),
            ('?', 'l') => self.modes.private.retain(|mode| !numbers.contains(&u32::from(*mode))),
            ('>', 'u') => keyboard.push(first),
            ('<', 'u') => keyboard.truncate(keyboard.len().saturating_sub(first.max(1) as usize)),
            ('>', 'm') if first == 4 => {
                self.modes.modify_other_keys = numbers.get(1).copied().unwrap_or(0);
            }
            (' ', 't') if first == 22 => self.modes.saved_titles.push(self.modes.title.clone()),
            (' ', 't') if first == 23 => {
                if let Some(title) = self.modes.saved_titles.pop() {
                    self.modes.title = title;
                }
            }
            (' ' | '?', 'J') if first == 3 => self.scrollback_clears += 1,
            (' ' | '?', 'J') if first == 2 => self.full_clears += 1,
            _ => {}
        }
    }
}

fn size(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_followed_across_any_cut() {
        let bytes = b"\x1b[22;2t\x1b]2;title\x1b\\\x1b[?1049h\x1b[?1000;1006h\x1b[>1u\x1b[?25l\x1b]52;c;aGk=\x07\x1b[3J";
        for cut in 0..bytes.len() {
            let mut screen = Screen::new(80, 24);
            screen.feed(&bytes[..cut]);
            screen.feed(&bytes[cut..]);
            assert_eq!(screen.modes.private, BTreeSet::from([1000, 1006, 1049]));
            assert_eq!(screen.modes.keyboard, [vec![], vec![1]]);
            assert_eq!(screen.modes.title, "title");
            assert_eq!(screen.clipboard, ["c;aGk="]);
            assert_eq!(screen.scrollback_clears, 1);
            screen.feed(b"\x1b[<1u\x1b[?1000;1006l\x1b[?25h\x1b[?1049l\x1b[23;2t");
            assert_eq!(screen.modes, Modes::default());
        }
    }

    #[test]
    fn a_keyboard_popped_on_the_wrong_screen_is_not_balanced() {
        let mut screen = Screen::new(80, 24);
        screen.feed(b"\x1b[?1049h\x1b[>1u\x1b[?1049l\x1b[<1u");
        assert_ne!(screen.modes, Modes::default());
    }
}
