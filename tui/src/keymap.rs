//! Keys that are not editing: from a key press to an [`Action`].
//!
//! The dialog, the completion list and the composer see a key first; what they leave comes here.
//! The default table can be overlaid by the person's own entries, and the help lines are made from
//! whatever table is in force. Nothing here carries an action out.

use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use thiserror::Error;

/// What a key orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    ScrollPageUp,
    ScrollPageDown,
    ScrollLineUp,
    ScrollLineDown,
    ScrollTop,
    ScrollBottom,
    FocusPreviousCell,
    FocusNextCell,
    ToggleCell,
    ToggleThinking,
    ToggleDetails,
    CopyAnswer,
    OpenEditor,
    FocusDialog,
    Interrupt,
    SwapBackend,
    ToggleTeam,
    ToggleWorkerScreen,
    ToggleMouse,
    Redraw,
    Suspend,
    Help,
}

/// Each action with its name in a settings file, its keys by default, and its help.
const TABLE: &[(Action, &str, &[&str], &str)] = &[
    (Action::ScrollPageUp, "scroll-page-up", &["pageup", "alt+pageup"], "scroll up a page"),
    (
        Action::ScrollPageDown,
        "scroll-page-down",
        &["pagedown", "alt+pagedown"],
        "scroll down a page",
    ),
    (Action::ScrollLineUp, "scroll-line-up", &["alt+up", "shift+up"], "scroll up a line"),
    (Action::ScrollLineDown, "scroll-line-down", &["alt+down", "shift+down"], "scroll down a line"),
    (Action::ScrollTop, "scroll-top", &["ctrl+home"], "scroll to the beginning"),
    (Action::ScrollBottom, "scroll-bottom", &["ctrl+end"], "scroll to the end and follow"),
    (
        Action::FocusPreviousCell,
        "focus-previous-cell",
        &["alt+k", "ctrl+up"],
        "select the previous cell",
    ),
    (Action::FocusNextCell, "focus-next-cell", &["alt+j", "ctrl+down"], "select the next cell"),
    (Action::ToggleCell, "toggle-cell", &["alt+o"], "unfold or fold the selected cell"),
    (Action::ToggleThinking, "toggle-thinking", &["ctrl+o"], "show or hide thinking"),
    (
        Action::ToggleDetails,
        "toggle-details",
        &["f2", "ctrl+x"],
        "show or fold the details of tool calls",
    ),
    (Action::CopyAnswer, "copy-answer", &["alt+c"], "copy the selected cell or the last answer"),
    (Action::OpenEditor, "open-editor", &["ctrl+g"], "edit the draft in your editor"),
    (Action::FocusDialog, "focus-dialog", &["tab"], "answer a waiting permission request"),
    (Action::Interrupt, "interrupt", &["esc"], "interrupt what is running"),
    (Action::SwapBackend, "swap-backend", &["ctrl+p"], "switch to the next backend"),
    (Action::ToggleTeam, "toggle-team", &["ctrl+t"], "look at the worker"),
    // Where keys of old are sent, Ctrl+] arrives as Ctrl+5.
    (
        Action::ToggleWorkerScreen,
        "toggle-worker-screen",
        &["ctrl+]", "ctrl+5"],
        "look at the worker's own screen and type into it, and back",
    ),
    (
        Action::ToggleMouse,
        "toggle-mouse",
        &["f6"],
        "let the mouse scroll, or leave it to the terminal",
    ),
    (Action::Redraw, "redraw", &["ctrl+l"], "draw the screen again"),
    (Action::Suspend, "suspend", &["ctrl+z"], "suspend; fg returns"),
    (Action::Help, "help", &["f1"], "keys and commands"),
];

/// Keys of the composer, for the help only: editing is the composer's and cannot be remapped.
const EDITING: &[(&str, &str)] = &[
    ("Enter", "send; during a turn into it where the backend takes that, else after it"),
    ("Ctrl+J, Shift+Enter, Alt+Enter, \\ Enter", "new line"),
    ("Up, Down", "earlier and later prompts, on the first and last line"),
    ("Ctrl+R", "search earlier prompts"),
    ("Tab", "complete a command; during a turn send after it"),
    ("Ctrl+U, Ctrl+C", "empty the draft (Up or Ctrl+Y brings it back)"),
    ("Ctrl+C twice, Ctrl+D", "leave, when the draft is empty"),
    ("Ctrl+_, Alt+_", "undo, redo"),
    ("Ctrl+A, Ctrl+E, Alt+B, Alt+F", "to the ends of the line, word by word"),
    ("Ctrl+W, Alt+D, Ctrl+K, Ctrl+Y", "delete a word back, a word on, to the end; put back"),
];

impl Action {
    /// Its name in a settings file.
    #[must_use]
    pub fn name(self) -> &'static str {
        TABLE.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }
}

/// A key with its modifiers, in one spelling whatever the terminal reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

impl Key {
    /// Shift is part of a character already; letters with Ctrl or Alt count as small ones.
    fn new(code: KeyCode, modifiers: KeyModifiers) -> Self {
        let mut modifiers =
            modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        let code = match code {
            KeyCode::Char(c) => {
                modifiers.remove(KeyModifiers::SHIFT);
                KeyCode::Char(if modifiers.is_empty() { c } else { c.to_ascii_lowercase() })
            }
            KeyCode::BackTab => {
                modifiers.insert(KeyModifiers::SHIFT);
                KeyCode::Tab
            }
            other => other,
        };
        Self { code, modifiers }
    }
}

impl From<&KeyEvent> for Key {
    fn from(event: &KeyEvent) -> Self {
        Self::new(event.code, event.modifiers)
    }
}

/// What is wrong with a remapping.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeymapError {
    #[error("\"{0}\" is no key; write for example ctrl+o, alt+up, f2, pageup")]
    Key(String),
    #[error("\"{0}\" is no action; one of: {names}, none", names = action_names())]
    Action(String),
}

fn action_names() -> String {
    TABLE.iter().map(|row| row.1).collect::<Vec<_>>().join(", ")
}

impl FromStr for Key {
    type Err = KeymapError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || KeymapError::Key(text.to_owned());
        let mut modifiers = KeyModifiers::NONE;
        let lower = text.trim().to_ascii_lowercase();
        let mut rest = lower.as_str();
        while let Some((head, tail)) = rest.split_once('+').filter(|(_, tail)| !tail.is_empty()) {
            modifiers |= match head {
                "ctrl" | "control" => KeyModifiers::CONTROL,
                "alt" | "meta" | "option" => KeyModifiers::ALT,
                "shift" => KeyModifiers::SHIFT,
                _ => return Err(wrong()),
            };
            rest = tail;
        }
        let code = match rest {
            "up" => KeyCode::Up,
            "down" => KeyCode::Down,
            "left" => KeyCode::Left,
            "right" => KeyCode::Right,
            "home" => KeyCode::Home,
            "end" => KeyCode::End,
            "pageup" => KeyCode::PageUp,
            "pagedown" => KeyCode::PageDown,
            "insert" => KeyCode::Insert,
            "delete" => KeyCode::Delete,
            "enter" => KeyCode::Enter,
            "esc" | "escape" => KeyCode::Esc,
            "tab" => KeyCode::Tab,
            "space" => KeyCode::Char(' '),
            _ => {
                let mut chars = rest.chars();
                match (chars.next(), chars.as_str()) {
                    (Some(c), "") => KeyCode::Char(c),
                    (Some('f'), number) => match number.parse() {
                        Ok(n @ 1..=24) => KeyCode::F(n),
                        _ => return Err(wrong()),
                    },
                    _ => return Err(wrong()),
                }
            }
        };
        Ok(Self::new(code, modifiers))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, name) in [
            (KeyModifiers::CONTROL, "Ctrl+"),
            (KeyModifiers::ALT, "Alt+"),
            (KeyModifiers::SHIFT, "Shift+"),
        ] {
            if self.modifiers.contains(modifier) {
                f.write_str(name)?;
            }
        }
        match self.code {
            KeyCode::Char(' ') => f.write_str("Space"),
            KeyCode::Char(c) => write!(f, "{}", c.to_uppercase()),
            KeyCode::PageUp => f.write_str("PageUp"),
            KeyCode::PageDown => f.write_str("PageDown"),
            KeyCode::Esc => f.write_str("Esc"),
            KeyCode::F(n) => write!(f, "F{n}"),
            other => write!(f, "{other:?}"),
        }
    }
}

/// The table in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap {
    /// In the order of the help; a key appears once.
    entries: Vec<(Key, Action)>,
}

impl Default for Keymap {
    fn default() -> Self {
        let mut entries = Vec::new();
        for (action, _, keys, _) in TABLE {
            for key in *keys {
                // A test shows that every default key can be read.
                if let Ok(key) = key.parse() {
                    entries.push((key, *action));
                }
            }
        }
        Self { entries }
    }
}

impl Keymap {
    /// The default table with these entries (key, action name) laid over it. The action `none`
    /// frees a key.
    pub fn from_entries<'a>(
        entries: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, KeymapError> {
        let mut map = Self::default();
        for (key, name) in entries {
            let key: Key = key.parse()?;
            map.entries.retain(|(known, _)| *known != key);
            if name != "none" {
                let action =
                    Action::from_name(name).ok_or_else(|| KeymapError::Action(name.to_owned()))?;
                map.entries.push((key, action));
            }
        }
        Ok(map)
    }

    /// What this key orders. Releases order nothing: terminals that report them would otherwise
    /// do everything twice.
    #[must_use]
    pub fn action(&self, event: &KeyEvent) -> Option<Action> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        // With these a key is an order to the desktop.
        let foreign = KeyModifiers::SUPER | KeyModifiers::HYPER | KeyModifiers::META;
        if event.modifiers.intersects(foreign) {
            return None;
        }
        let key = Key::from(event);
        self.entries.iter().find(|(known, _)| *known == key).map(|(_, action)| *action)
    }

    /// The key to name for this action; none when it was taken away.
    #[must_use]
    pub fn first_key(&self, action: Action) -> Option<Key> {
        self.entries.iter().find(|(_, known)| *known == action).map(|(key, _)| *key)
    }

    /// Keys and what they do, in the order of the table.
    #[must_use]
    pub fn help(&self) -> Vec<(String, &'static str)> {
        let mut lines: Vec<(String, &'static str)> =
            EDITING.iter().map(|(keys, help)| ((*keys).to_owned(), *help)).collect();
        for (action, _, _, help) in TABLE {
            let keys: Vec<String> = self
                .entries
                .iter()
                .filter(|(_, known)| known == action)
                .map(|(key, _)| key.to_string())
                .collect();
            if !keys.is_empty() {
                lines.push((keys.join(", "), help));
            }
        }
        lines
    }

    /// The same as a markdown table, for `/help` and the README.
    #[must_use]
    pub fn help_markdown(&self) -> String {
        let mut out = String::from("| Keys | What they do |\n| --- | --- |\n");
        for (keys, help) in self.help() {
            // A key that is a mark of markdown is meant as a key.
            let keys = keys.replace('\\', "\\\\").replace('|', "\\|").replace('_', "\\_");
            out.push_str(&format!("| {keys} | {help} |\n"));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    #[test]
    fn default_keys_can_all_be_read_and_none_is_taken_twice() {
        let mut seen = std::collections::HashSet::new();
        for (action, _, keys, _) in TABLE {
            for key in *keys {
                let parsed: Key = key.parse().unwrap();
                assert!(seen.insert(parsed), "{key} orders two things, one of them {action:?}");
            }
        }
        assert_eq!(Keymap::default().entries.len(), seen.len());
    }

    #[test]
    fn scroll_keys_scroll() {
        let map = Keymap::default();
        for (code, modifiers, expected) in [
            (KeyCode::PageUp, KeyModifiers::NONE, Action::ScrollPageUp),
            (KeyCode::PageDown, KeyModifiers::NONE, Action::ScrollPageDown),
            (KeyCode::Up, KeyModifiers::ALT, Action::ScrollLineUp),
            (KeyCode::Down, KeyModifiers::ALT, Action::ScrollLineDown),
            (KeyCode::Home, KeyModifiers::CONTROL, Action::ScrollTop),
            (KeyCode::End, KeyModifiers::CONTROL, Action::ScrollBottom),
        ] {
            assert_eq!(map.action(&press(code, modifiers)), Some(expected));
        }
    }

    #[test]
    fn a_release_orders_nothing_and_a_repeat_orders_again() {
        let map = Keymap::default();
        let mut event = press(KeyCode::PageUp, KeyModifiers::NONE);
        event.kind = KeyEventKind::Release;
        assert_eq!(map.action(&event), None);
        event.kind = KeyEventKind::Repeat;
        assert_eq!(map.action(&event), Some(Action::ScrollPageUp));
    }

    #[test]
    fn letters_count_the_same_with_and_without_reported_shift() {
        let map = Keymap::default();
        for event in [
            press(KeyCode::Char('o'), KeyModifiers::CONTROL),
            press(KeyCode::Char('O'), KeyModifiers::CONTROL | KeyModifiers::SHIFT),
        ] {
            assert_eq!(map.action(&event), Some(Action::ToggleThinking));
        }
    }

    #[test]
    fn entries_overlay_the_defaults() {
        let map = Keymap::from_entries([("ctrl+o", "none"), ("F7", "toggle-thinking")]).unwrap();
        assert_eq!(map.action(&press(KeyCode::Char('o'), KeyModifiers::CONTROL)), None);
        assert_eq!(
            map.action(&press(KeyCode::F(7), KeyModifiers::NONE)),
            Some(Action::ToggleThinking)
        );
        assert_eq!(
            map.action(&press(KeyCode::PageUp, KeyModifiers::NONE)),
            Some(Action::ScrollPageUp)
        );
    }

    #[test]
    fn wrong_entries_say_what_is_right() {
        let error = Keymap::from_entries([("hyper+x", "help")]).unwrap_err();
        assert!(error.to_string().contains("ctrl+o"));
        let error = Keymap::from_entries([("f9", "fly")]).unwrap_err();
        assert!(error.to_string().contains("scroll-page-up"));
    }

    #[test]
    fn a_key_reads_back_as_written() {
        for (text, shown) in [
            ("ctrl+o", "Ctrl+O"),
            ("alt+pageup", "Alt+PageUp"),
            ("ctrl++", "Ctrl++"),
            ("f12", "F12"),
        ] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn help_follows_the_table_in_force() {
        let map = Keymap::from_entries([("f9", "copy-answer")]).unwrap();
        assert!(map.help_markdown().contains("| Alt+C, F9 | copy the selected cell"));
    }
}
