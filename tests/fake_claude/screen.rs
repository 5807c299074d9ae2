//! What is drawn: the conversation, the input box, a dialog. Simple on purpose; no test may read
//! more from it than a person would.

use crate::dialog::Dialog;
use crate::terminal::Terminal;
use crate::version::Version;

#[derive(Debug, Default)]
pub struct Screen {
    /// The conversation so far.
    pub lines: Vec<String>,
    /// The end of the text that streams.
    pub live: String,
}

impl Screen {
    pub fn say(&mut self, mark: char, text: &str) {
        for (index, line) in text.lines().enumerate() {
            let mark = if index == 0 { mark } else { ' ' };
            self.lines.push(format!("{mark} {line}"));
        }
        self.lines.push(String::new());
    }

    /// Draws everything again.
    pub fn draw(
        &self,
        terminal: &Terminal,
        version: Version,
        input: &str,
        working: bool,
        dialog: Option<&Dialog>,
    ) {
        let (columns, rows) = terminal.size();
        let mut all = vec![format!(" Claude Code v{}", version.number()), String::new()];
        all.extend(self.lines.iter().cloned());
        if !self.live.is_empty() {
            all.extend(self.live.lines().map(|line| format!("● {line}")));
        }
        let bottom = match dialog {
            Some(dialog) => {
                let mut bottom = vec!["─".repeat(columns)];
                bottom.extend(dialog.lines());
                bottom
            }
            None => box_lines(input, working, columns),
        };
        let room = rows.saturating_sub(bottom.len());
        let shown: Vec<String> = all.iter().flat_map(|line| wrapped(line, columns)).collect();
        let from = shown.len().saturating_sub(room);
        let mut frame = String::from("\x1b[?25l\x1b[H");
        for row in 0..rows {
            let line = if row < room {
                shown.get(from + row).map_or("", String::as_str)
            } else {
                bottom.get(row - room).map_or("", String::as_str)
            };
            let line: String = line.chars().filter(|c| !c.is_control()).take(columns).collect();
            frame.push_str(&format!("\x1b[{};1H{line}\x1b[K", row + 1));
        }
        frame.push_str("\x1b[?25h");
        terminal.write(&frame);
    }
}

fn box_lines(input: &str, working: bool, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if working {
        lines.push("✻ Working… (esc to interrupt)".to_owned());
    }
    lines.push("─".repeat(columns));
    let last: Vec<&str> = input.split('\n').rev().take(5).collect();
    for (index, line) in last.iter().rev().enumerate() {
        let mark = if index == 0 { '❯' } else { ' ' };
        let tail: String = line.chars().take(columns.saturating_sub(2)).collect();
        lines.push(format!("{mark} {tail}"));
    }
    lines.push("─".repeat(columns));
    lines.push("  ⏸ manual mode on · ? for shortcuts".to_owned());
    lines
}

fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    if letters.is_empty() {
        return vec![String::new()];
    }
    letters.chunks(columns.max(1)).map(|chunk| chunk.iter().collect()).collect()
}
