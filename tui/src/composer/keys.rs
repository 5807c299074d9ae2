//! What each key does in the composer.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::completion::Completion;
use super::history::Search;
use crate::commands::{Parsed, parse};

use super::{Composer, ComposerOutcome as Outcome, QUIT_WINDOW};

const CTRL: KeyModifiers = KeyModifiers::CONTROL;
const ALT: KeyModifiers = KeyModifiers::ALT;
const SHIFT: KeyModifiers = KeyModifiers::SHIFT;
const NONE: KeyModifiers = KeyModifiers::NONE;

/// With one of these a letter is an order to the desktop, not text.
const FOREIGN: KeyModifiers =
    KeyModifiers::SUPER.union(KeyModifiers::HYPER).union(KeyModifiers::META);

/// A key with the modifiers that count, letters with Ctrl or Alt small.
fn plain(key: &KeyEvent) -> (KeyCode, KeyModifiers) {
    let mut modifiers = key.modifiers & (CTRL | ALT | SHIFT);
    let code = match key.code {
        KeyCode::Char(c) => {
            modifiers.remove(SHIFT);
            KeyCode::Char(if modifiers.is_empty() { c } else { c.to_ascii_lowercase() })
        }
        other => other,
    };
    // A character that a layout makes with AltGr arrives as Ctrl+Alt on some terminals.
    match code {
        KeyCode::Char(c) if modifiers == CTRL | ALT && !c.is_ascii_alphanumeric() => (code, NONE),
        _ => (code, modifiers),
    }
}

impl Composer {
    pub(super) fn key(&mut self, now: Instant, key: &KeyEvent) -> Outcome {
        if key.modifiers.intersects(FOREIGN) {
            return Outcome::Ignored;
        }
        let (code, modifiers) = plain(key);
        if (code, modifiers) == (KeyCode::Char('c'), CTRL) {
            return self.ctrl_c(now);
        }
        let had_notice = self.notice.take().is_some() | self.quit_until.take().is_some();
        if self.search.is_some()
            && let Some(outcome) = self.search_key(code, modifiers)
        {
            return outcome;
        }
        if self.completion.is_some()
            && let Some(outcome) = self.completion_key(code, modifiers)
        {
            return outcome;
        }
        let outcome = match self.control_key(code, modifiers) {
            Outcome::Ignored => self.edit_key(code, modifiers),
            outcome => outcome,
        };
        // Esc after a message means "I have read it".
        if outcome == Outcome::Ignored && had_notice && code == KeyCode::Esc && !self.busy {
            return Outcome::Consumed;
        }
        outcome
    }

    fn ctrl_c(&mut self, now: Instant) -> Outcome {
        self.notice = None;
        if self.end_search() {
            return Outcome::Consumed;
        }
        if !self.editor.is_empty() {
            self.put_aside();
            self.notice = Some("draft put aside; Up brings it back".to_owned());
            self.quit_until = None;
            return Outcome::Cancel;
        }
        if self.quit_until.take().is_some_and(|until| now < until) {
            return Outcome::Exit;
        }
        self.quit_until = Some(now + QUIT_WINDOW);
        Outcome::Cancel
    }

    /// Keys that mean something to the whole program.
    fn control_key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Outcome {
        match (code, modifiers) {
            (KeyCode::Char('d'), CTRL) if self.editor.is_empty() => Outcome::Exit,
            (KeyCode::Char('p'), CTRL) => Outcome::ProviderSwap,
            (KeyCode::Char('t'), CTRL) => Outcome::TeamToggle,
            (KeyCode::Enter, NONE) => self.enter(),
            (KeyCode::Tab, NONE) if self.busy => self.submit_later(),
            (KeyCode::Enter, _) | (KeyCode::Char('j'), CTRL) => {
                self.editor.newline();
                self.edited();
                Outcome::Consumed
            }
            (KeyCode::Char('r'), CTRL) => {
                self.search =
                    Some(Search { words: String::new(), place: None, draft: self.editor.text() });
                self.completion = None;
                Outcome::Consumed
            }
            _ => Outcome::Ignored,
        }
    }

    fn enter(&mut self) -> Outcome {
        // A backslash right before the caret asks for a new line, on every terminal.
        let caret = self.editor.caret();
        let line = &self.editor.lines()[caret.line];
        if line[..caret.byte].ends_with('\\') {
            self.editor.backspace();
            self.editor.newline();
            self.edited();
            return Outcome::Consumed;
        }
        self.submit()
    }

    fn edit_key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Outcome {
        if self.move_key(code, modifiers) {
            self.goal = None;
            self.recalled = false;
            self.complete();
            return Outcome::Consumed;
        }
        match (code, modifiers) {
            (KeyCode::Up, NONE) => return self.up(),
            (KeyCode::Down, NONE) => return self.down(),
            (KeyCode::Char('u'), CTRL) => {
                if !self.editor.is_empty() {
                    self.put_aside();
                }
                return Outcome::Consumed;
            }
            (KeyCode::Char(c), NONE) if !c.is_control() => self.editor.insert_char(c),
            (KeyCode::Backspace, NONE | SHIFT) | (KeyCode::Char('h'), CTRL) => {
                self.editor.backspace();
            }
            (KeyCode::Delete, NONE | SHIFT) | (KeyCode::Char('d'), CTRL) => self.editor.delete(),
            (KeyCode::Char('w'), CTRL) | (KeyCode::Backspace, ALT | CTRL) => {
                self.editor.kill_word_left();
            }
            (KeyCode::Char('d'), ALT) | (KeyCode::Delete, ALT | CTRL) => {
                self.editor.kill_word_right();
            }
            (KeyCode::Char('k'), CTRL) => self.editor.kill_line_end(),
            (KeyCode::Char('y'), CTRL) => self.editor.yank(),
            // Ctrl+_ and Ctrl+/ are one byte, which arrives as Ctrl+7 without the newer reports.
            (KeyCode::Char('_' | '/' | '7'), CTRL) => {
                self.editor.undo();
            }
            (KeyCode::Char('_' | '/'), ALT) => {
                self.editor.redo();
            }
            _ => return Outcome::Ignored,
        }
        self.edited();
        Outcome::Consumed
    }

    /// Moves the caret; false when the key moves nothing.
    fn move_key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> bool {
        match (code, modifiers) {
            (KeyCode::Left, NONE | SHIFT) | (KeyCode::Char('b'), CTRL) => self.editor.left(),
            (KeyCode::Right, NONE | SHIFT) | (KeyCode::Char('f'), CTRL) => self.editor.right(),
            (KeyCode::Left, CTRL | ALT) | (KeyCode::Char('b'), ALT) => self.editor.word_left(),
            (KeyCode::Right, CTRL | ALT) | (KeyCode::Char('f'), ALT) => self.editor.word_right(),
            (KeyCode::Home, NONE | SHIFT) | (KeyCode::Char('a'), CTRL) => self.editor.line_start(),
            (KeyCode::End, NONE | SHIFT) | (KeyCode::Char('e'), CTRL) => self.editor.line_end(),
            _ => return false,
        }
        true
    }

    fn up(&mut self) -> Outcome {
        if !self.recalled && self.vertical(false) {
            return Outcome::Consumed;
        }
        let draft = self.editor.text();
        if let Some(entry) = self.history.older(&draft) {
            self.show(&entry);
            self.recalled = true;
        }
        Outcome::Consumed
    }

    fn down(&mut self) -> Outcome {
        if !self.recalled && self.vertical(true) {
            return Outcome::Consumed;
        }
        if !self.history.is_browsing() {
            return Outcome::Ignored;
        }
        if let Some(entry) = self.history.newer() {
            self.show(&entry);
            self.recalled = self.history.is_browsing();
        }
        Outcome::Consumed
    }

    /// Keys of an open list; none for keys that edit on.
    fn completion_key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Option<Outcome> {
        let list = self.completion.as_mut()?;
        match (code, modifiers) {
            (KeyCode::Up, NONE) | (KeyCode::Char('p'), CTRL) => list.up(),
            (KeyCode::Down, NONE) | (KeyCode::Char('n'), CTRL) => list.down(),
            (KeyCode::Esc, NONE) => {
                self.completion = None;
                self.dismissed = Some(self.editor.text());
            }
            (KeyCode::Tab, NONE) => {
                let draft = list.current()?.draft.clone();
                self.editor.replace(&draft);
                self.edited();
            }
            (KeyCode::Enter, NONE) => return Some(self.completion_enter()),
            _ => return None,
        }
        Some(Outcome::Consumed)
    }

    /// Enter on a complete command line submits it; otherwise it takes the selected row, and runs
    /// that too when nothing is left to say.
    fn completion_enter(&mut self) -> Outcome {
        let typed = self.editor.text();
        let moved = self.completion.as_ref().is_some_and(|list| list.moved);
        let says_all = matches!(parse(&typed), Parsed::Command { .. });
        if says_all && !moved {
            return self.submit();
        }
        let list = self.completion.as_ref();
        let chosen = list.and_then(Completion::current).filter(|row| moved || row.begins);
        let Some(candidate) = chosen.cloned() else { return self.submit() };
        self.editor.replace(&candidate.draft);
        self.edited();
        // With nothing to add and nothing to offer, only submitting can say what is missing.
        let stuck = self.completion.is_none() && candidate.draft.trim_end() == typed.trim_end();
        if candidate.complete || stuck { self.submit() } else { Outcome::Consumed }
    }

    /// Keys of a search; none for keys that take the match and then act on it.
    fn search_key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Option<Outcome> {
        let search = self.search.as_mut()?;
        match (code, modifiers) {
            (KeyCode::Char('r'), CTRL) | (KeyCode::Up, NONE) => {
                let from = search.place.map_or(0, |place| place + 1);
                self.search_again(from);
            }
            (KeyCode::Char('s'), CTRL) | (KeyCode::Down, NONE) => self.search_newer(),
            (KeyCode::Char(c), NONE) if !c.is_control() => {
                search.words.push(c);
                self.search_again(0);
            }
            (KeyCode::Backspace, NONE) | (KeyCode::Char('h'), CTRL) => {
                search.words.pop();
                self.search_again(0);
            }
            (KeyCode::Esc, NONE) | (KeyCode::Char('g'), CTRL) => {
                self.end_search();
            }
            (KeyCode::Enter | KeyCode::Tab, NONE) => self.take_match(),
            _ => {
                self.take_match();
                return None;
            }
        }
        Some(Outcome::Consumed)
    }

    fn take_match(&mut self) {
        self.search = None;
        self.complete();
    }

    fn search_newer(&mut self) {
        let Some(search) = &self.search else { return };
        let Some(place) = search.place else { return };
        let newer = (0..place).rev().find(|from| {
            self.history.search(&search.words, *from).is_some_and(|(found, _)| found == *from)
        });
        if let Some(from) = newer {
            self.search_again(from);
        }
    }
}
