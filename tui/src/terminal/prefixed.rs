//! Keys that come with an Esc in front: what Alt is on terminals that send Esc for it.
//!
//! The library takes `Esc Esc [ A` for the key Esc and the letters `[A`, which would stand in the
//! draft. Letters that came together with an Esc and spell a key are that key with Alt. A person's
//! own Esc and letters never come together, so what comes later is left as it is. Pure: whether
//! more has come is passed in.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Longest sequence that is looked at, in characters; reports of the mouse are the longest.
const LONGEST: usize = 20;

/// Puts sequences together again. Holds events back only while more of them are there.
#[derive(Debug, Default)]
pub struct Prefixed {
    /// The Esc and the letters behind it.
    held: Vec<KeyEvent>,
}

impl Prefixed {
    /// Whether this event can belong to such a sequence; all others need not pass through here.
    pub fn concerns(&self, event: &Event) -> bool {
        !self.held.is_empty() || matches!(event, Event::Key(key) if is_escape(key))
    }

    /// Takes one event and returns what can be handed on. `more`: others came along with it.
    pub fn push(&mut self, event: Event, more: bool) -> Vec<Event> {
        let Event::Key(key) = event else {
            let mut out = self.flush();
            out.push(event);
            return out;
        };
        if self.held.is_empty() {
            if more && is_escape(&key) {
                self.held.push(key);
                return Vec::new();
            }
            return vec![event];
        }
        let mut out = Vec::new();
        if is_escape(&key) {
            // The one before was a key of its own.
            out = self.flush();
        }
        self.held.push(key);
        match spelled(&self.held[1..]) {
            Spelled::Key(key) => {
                self.held.clear();
                out.push(Event::Key(key));
            }
            Spelled::Report => {
                let escape = self.held.drain(..).next();
                out.extend(escape.map(Event::Key));
            }
            Spelled::Beginning if more && self.held.len() <= LONGEST => {}
            Spelled::Beginning | Spelled::Nothing => out.extend(self.flush()),
        }
        out
    }

    /// Whatever was held back, as it came.
    pub fn flush(&mut self) -> Vec<Event> {
        self.held.drain(..).map(Event::Key).collect()
    }
}

fn is_escape(key: &KeyEvent) -> bool {
    key.code == KeyCode::Esc && key.modifiers.is_empty() && key.kind == KeyEventKind::Press
}

/// What letters spell.
enum Spelled {
    Key(KeyEvent),
    /// Something that the terminal reports by itself; the Esc before it was pressed.
    Report,
    Beginning,
    Nothing,
}

fn spelled(keys: &[KeyEvent]) -> Spelled {
    let mut text = String::new();
    for key in keys {
        match key.code {
            KeyCode::Char(c) if (key.modifiers - KeyModifiers::SHIFT).is_empty() => text.push(c),
            _ => return Spelled::Nothing,
        }
    }
    let Some(rest) = text.strip_prefix(['[', 'O']) else {
        return if text.is_empty() { Spelled::Beginning } else { Spelled::Nothing };
    };
    let Some(end) = rest.find(|c: char| !matches!(c, '0'..='9' | ';' | '<')) else {
        return Spelled::Beginning;
    };
    let (numbers, end) = rest.split_at(end);
    match end {
        "M" | "m" if numbers.starts_with('<') => Spelled::Report,
        "I" | "O" if numbers.is_empty() && text.starts_with('[') => Spelled::Report,
        _ => key(numbers, end).map_or(Spelled::Nothing, Spelled::Key),
    }
}

/// The key with Alt that these numbers and this last letter mean.
fn key(numbers: &str, end: &str) -> Option<KeyEvent> {
    let (number, held) = numbers.split_once(';').unwrap_or((numbers, "1"));
    let code = match (end, number) {
        ("A", _) => KeyCode::Up,
        ("B", _) => KeyCode::Down,
        ("C", _) => KeyCode::Right,
        ("D", _) => KeyCode::Left,
        ("H", _) | ("~", "1" | "7") => KeyCode::Home,
        ("F", _) | ("~", "4" | "8") => KeyCode::End,
        ("Z", "") => KeyCode::BackTab,
        ("~", "2") => KeyCode::Insert,
        ("~", "3") => KeyCode::Delete,
        ("~", "5") => KeyCode::PageUp,
        ("~", "6") => KeyCode::PageDown,
        _ => return None,
    };
    // The modifiers are bits, counted from one: Shift, Alt, Ctrl.
    let bits = held.parse::<u8>().ok()?.checked_sub(1)?;
    let mut modifiers = KeyModifiers::ALT;
    modifiers.set(KeyModifiers::SHIFT, bits & 1 != 0 || code == KeyCode::BackTab);
    modifiers.set(KeyModifiers::CONTROL, bits & 4 != 0);
    Some(KeyEvent::new(code, modifiers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// Events as the library makes them of these bytes, where `\x1b` is a key Esc.
    fn events(text: &str) -> Vec<Event> {
        let key = |c: char| match c {
            '\x1b' => testing::key("esc"),
            c if c.is_uppercase() => KeyEvent::new(KeyCode::Char(c), KeyModifiers::SHIFT),
            c => KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE),
        };
        text.chars().map(key).map(Event::Key).collect()
    }

    /// What comes out when everything came in one read.
    fn together(came: Vec<Event>) -> Vec<Event> {
        let (mut prefixed, count) = (Prefixed::default(), came.len());
        let numbered = came.into_iter().enumerate();
        numbered.flat_map(|(at, event)| prefixed.push(event, at + 1 < count)).collect()
    }

    #[track_caller]
    fn check(came: &str, expected: &[&str]) {
        let expected: Vec<Event> =
            expected.iter().map(|name| Event::Key(testing::key(name))).collect();
        assert_eq!(together(events(came)), expected, "{came:?}");
    }

    #[test]
    fn a_key_with_an_escape_in_front_is_the_key_with_alt() {
        check("\x1b[A", &["alt+up"]);
        check("\x1bOB", &["alt+down"]);
        check("\x1b[5~", &["alt+pageup"]);
        check("\x1b[6~", &["alt+pagedown"]);
        check("\x1b[1;5D", &["ctrl+alt+left"]);
        check("\x1b[1;2C", &["alt+shift+right"]);
        check("\x1bOH", &["alt+home"]);
        check("\x1b[Ax\x1b[Bq", &["alt+up", "x", "alt+down", "q"]);
        check("\x1b\x1b[A", &["esc", "alt+up"]);
    }

    #[test]
    fn a_report_behind_an_escape_leaves_the_escape() {
        check("\x1b[<64;10;12Mx", &["esc", "x"]);
        check("\x1b[Ix", &["esc", "x"]);
    }

    #[test]
    fn letters_that_spell_no_key_are_typed() {
        for typed in ["\x1b", "\x1bx", "\x1b[", "\x1b[5", "\x1b[h", "\x1bOk", "[A", "x\x1b"] {
            assert_eq!(together(events(typed)), events(typed), "{typed:?}");
        }
        let long = format!("\x1b[{}", "1;".repeat(30));
        assert_eq!(together(events(&long)), events(&long));
    }

    #[test]
    fn letters_that_come_later_are_the_persons_own() {
        let mut prefixed = Prefixed::default();
        let came = events("\x1b[A");
        let out: Vec<Event> =
            came.iter().flat_map(|event| prefixed.push(event.clone(), false)).collect();
        assert_eq!(out, came);
    }

    #[test]
    fn other_events_are_handed_on_in_order() {
        let mut came = events("\x1b[");
        came.push(Event::FocusGained);
        assert_eq!(together(came.clone()), came);
    }
}
