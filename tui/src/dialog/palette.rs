//! The few styles that dialogs and the composer need, by meaning.

use ratatui::style::{Color, Modifier, Style};

/// Styles by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Palette {
    pub text: Style,
    pub dim: Style,
    pub accent: Style,
    pub warning: Style,
    pub error: Style,
    pub selected: Style,
    pub chip: Style,
    pub border: Style,
    pub added: Style,
    pub removed: Style,
}

impl Default for Palette {
    fn default() -> Self {
        let plain = Style::new();
        Self {
            text: plain,
            dim: plain.add_modifier(Modifier::DIM),
            accent: plain.fg(Color::Cyan),
            warning: plain.fg(Color::Yellow),
            error: plain.fg(Color::Red),
            selected: plain.add_modifier(Modifier::REVERSED),
            chip: plain.fg(Color::Magenta),
            border: plain.fg(Color::Yellow),
            added: plain.fg(Color::Green),
            removed: plain.fg(Color::Red),
        }
    }
}
