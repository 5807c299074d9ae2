//! The place where a person types: draft, paste chips, history, completion of commands.
//!
//! Keys and pastes come in with the time they came at; what they mean for the application comes
//! out as a [`ComposerOutcome`]. Nothing here reads a clock, a file or the clipboard, and nothing
//! sends: a submitted text is handed over, and a draft is never lost on the way.

mod completion;
mod draw;
pub(crate) mod editor;
pub(crate) mod fuzzy;
mod history;
mod keys;
mod layout;
mod pastes;

use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind};

use crate::commands::{CommandAction, Parsed, Vocabulary, When, parse};
use completion::Completion;
use editor::{Caret, Editor};
use history::{History, Search};
use layout::Layout;
use pastes::Pastes;

/// How long the first Ctrl+C on an empty draft waits for the second.
pub const QUIT_WINDOW: Duration = Duration::from_secs(2);

/// Text that was not typed here (from the editor, from earlier prompts) is folded from this many
/// lines or characters on: a person may want to edit what is smaller.
const FOLD_WHOLE: (usize, usize) = (200, 10_000);

/// What a key or paste meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComposerOutcome {
    /// Send this text to the model. The draft is empty now and in the history.
    Submit(String),
    /// The same, after the turn that runs.
    SubmitLater(String),
    /// Carry this command out. `line` is what was typed, for the case that it cannot be done now:
    /// [`Composer::refuse`] brings it back with a message.
    Command { action: CommandAction, line: String },
    /// Ctrl+C: the draft was put aside, or it was empty and the next Ctrl+C within
    /// [`QUIT_WINDOW`] leaves.
    Cancel,
    /// Leave.
    Exit,
    /// Switch to the next backend.
    ProviderSwap,
    /// Show or hide the workers.
    TeamToggle,
    /// Used here; nothing else to do but draw.
    Consumed,
    /// Not a key of the composer.
    Ignored,
}

/// The composer's whole state.
pub struct Composer {
    editor: Editor,
    pastes: Pastes,
    history: History,
    search: Option<Search>,
    completion: Option<Completion>,
    /// The draft for which the person closed the list.
    dismissed: Option<String>,
    vocabulary: Vocabulary,
    busy: bool,
    /// A line under the draft, until the next key.
    notice: Option<String>,
    /// Until when a second Ctrl+C leaves.
    quit_until: Option<Instant>,
    /// The history entry on show has not been touched: Up and Down go on through the history.
    recalled: bool,
    /// The column that Up and Down aim for.
    goal: Option<usize>,
    layout: Layout,
    /// Revision and width that the layout was made for.
    layout_for: Option<(u64, usize)>,
    width: usize,
    top: usize,
}

impl Default for Composer {
    fn default() -> Self {
        Self {
            editor: Editor::default(),
            pastes: Pastes::default(),
            history: History::default(),
            search: None,
            completion: None,
            dismissed: None,
            vocabulary: Vocabulary::default(),
            busy: false,
            notice: None,
            quit_until: None,
            recalled: false,
            goal: None,
            layout: Layout::default(),
            layout_for: None,
            width: 80,
            top: 0,
        }
    }
}

impl Composer {
    /// Takes a key or a paste. Other events, and key releases, are ignored.
    pub fn handle(&mut self, now: Instant, event: &Event) -> ComposerOutcome {
        match event {
            Event::Key(key) => self.handle_key(now, key),
            Event::Paste(text) => {
                self.paste(text);
                ComposerOutcome::Consumed
            }
            _ => ComposerOutcome::Ignored,
        }
    }

    /// Takes a key.
    pub fn handle_key(&mut self, now: Instant, key: &KeyEvent) -> ComposerOutcome {
        // A modifier that some terminals report by itself must not count as "another key".
        let alone = matches!(
            key.code,
            KeyCode::Modifier(_) | KeyCode::CapsLock | KeyCode::NumLock | KeyCode::ScrollLock
        );
        if alone || key.kind == KeyEventKind::Release {
            return ComposerOutcome::Ignored;
        }
        self.key(now, key)
    }

    /// Text from the clipboard, never submitted whatever it contains; folded when it is large.
    pub fn paste(&mut self, text: &str) {
        let clean = pastes::clean(text);
        if let Some(search) = &mut self.search {
            search.words.extend(clean.chars().filter(|c| !c.is_control()));
            self.search_again(0);
            return;
        }
        let folded = self.pastes.fold(&clean);
        self.editor.insert_str(&folded);
        self.edited();
    }

    // The draft

    /// The draft with every chip expanded. Costs the whole text: not for every frame.
    pub fn text(&self) -> String {
        self.pastes.expand(&self.editor.text())
    }

    pub fn is_empty(&self) -> bool {
        self.editor.is_empty()
    }

    /// Replaces the draft (undo brings the old one back); the caret goes to its end.
    pub fn set_text(&mut self, text: &str) {
        let clean = pastes::clean(text);
        let folded = self.pastes.fold_above(&clean, FOLD_WHOLE.0, FOLD_WHOLE.1);
        self.search = None;
        self.editor.replace(&folded);
        self.edited();
    }

    /// Puts text that was never sent in front of the draft; the caret goes to the end. A search ends.
    pub fn put_before(&mut self, text: &str) {
        self.end_search();
        let draft = self.text();
        if draft.is_empty() {
            self.set_text(text);
        } else {
            self.set_text(&format!("{text}\n\n{draft}"));
        }
    }

    /// Inserts at the caret as if typed; nothing is folded.
    pub fn insert_str(&mut self, text: &str) {
        self.editor.insert_str(&pastes::clean(text));
        self.edited();
    }

    /// Takes the draft out, expanded, and leaves an empty one.
    pub fn take(&mut self) -> String {
        let text = self.text();
        self.editor.reset();
        self.edited();
        text
    }

    /// Empties the draft, recoverably: Up, Ctrl+Y and undo bring it back. Ends a search.
    pub fn clear(&mut self) {
        self.end_search();
        if !self.editor.is_empty() {
            self.put_aside();
        }
    }

    /// What the external editor gets: the draft with every chip expanded.
    pub fn editor_text(&self) -> String {
        self.text()
    }

    /// What came back from the external editor, which ends files with a newline of its own.
    pub fn set_from_editor(&mut self, text: &str) {
        let text = text.strip_suffix('\n').unwrap_or(text);
        self.set_text(text.strip_suffix('\r').unwrap_or(text));
    }

    /// Brings a command line back that could not be carried out now, and says why.
    pub fn refuse(&mut self, line: &str, message: impl Into<String>) {
        if self.editor.is_empty() {
            self.editor.replace(line);
            self.edited();
        }
        self.completion = None;
        self.notice = Some(message.into());
    }

    // What the application tells

    /// Earlier prompts, oldest first; their scope is the caller's choice. What was typed in this
    /// run stays, behind them, and without any new ones everything stays.
    pub fn load_history(&mut self, entries: Vec<String>) {
        self.history.load(entries);
        self.recalled = false;
    }

    /// Earlier prompts, oldest first, chips expanded.
    pub fn history(&self) -> Vec<String> {
        self.history.entries().iter().map(|entry| self.pastes.expand(entry)).collect()
    }

    /// Values for the completion of arguments.
    pub fn set_vocabulary(&mut self, vocabulary: Vocabulary) {
        self.vocabulary = vocabulary;
    }

    /// A turn runs: commands that only run between turns are held back with a message.
    pub fn set_busy(&mut self, busy: bool) {
        self.busy = busy;
    }

    // Time

    /// When something visible changes by itself.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.quit_until
    }

    /// To be called when the deadline has passed.
    pub fn tick(&mut self, now: Instant) {
        self.quit_until = self.quit_until.filter(|until| now < *until);
    }

    /// True while a list of commands is open, which has Tab, Up, Down, Enter and Esc.
    pub fn is_completing(&self) -> bool {
        self.completion.is_some()
    }

    /// True while earlier prompts are searched, which has nearly all keys.
    pub fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    // Inside

    /// After every change of the text: chips, list, layout follow it.
    fn edited(&mut self) {
        let chips: Vec<(usize, std::ops::Range<usize>)> = self
            .editor
            .lines()
            .iter()
            .enumerate()
            .flat_map(|(row, line)| self.pastes.chips(line).into_iter().map(move |c| (row, c)))
            .collect();
        self.editor.set_chips(&chips);
        self.goal = None;
        self.recalled = false;
        self.history.settle();
        self.complete();
    }

    fn complete(&mut self) {
        self.completion = None;
        if self.editor.lines().len() != 1 || !self.editor.at_end() {
            return;
        }
        let draft = &self.editor.lines()[0];
        if self.dismissed.as_deref() == Some(draft) {
            return;
        }
        self.dismissed = None;
        self.completion = Completion::for_draft(draft, &self.vocabulary);
    }

    /// Sends a prompt after the turn that runs; nothing else is a prompt for later.
    fn submit_later(&mut self) -> ComposerOutcome {
        if !matches!(parse(&self.editor.text()), Parsed::Prompt(text) if !text.trim().is_empty()) {
            return ComposerOutcome::Ignored;
        }
        match self.submit() {
            ComposerOutcome::Submit(text) => ComposerOutcome::SubmitLater(text),
            outcome => outcome,
        }
    }

    fn submit(&mut self) -> ComposerOutcome {
        let draft = self.editor.text();
        if draft.trim().is_empty() {
            return ComposerOutcome::Consumed;
        }
        match parse(&draft) {
            Parsed::Prompt(text) => {
                let text = self.pastes.expand(text.trim_end());
                self.history.push(&draft);
                self.editor.reset();
                self.edited();
                ComposerOutcome::Submit(text)
            }
            Parsed::Command { spec, .. } if self.busy && spec.when == When::Idle => {
                self.completion = None;
                self.notice = Some(format!(
                    "/{} waits for the end of the turn; Esc interrupts it",
                    spec.name
                ));
                ComposerOutcome::Consumed
            }
            Parsed::Command { action, .. } => {
                let line = draft.trim().to_owned();
                self.history.push(&line);
                self.editor.reset();
                self.edited();
                ComposerOutcome::Command { action, line }
            }
            Parsed::Refused(message) => {
                self.completion = None;
                self.notice = Some(message);
                ComposerOutcome::Consumed
            }
        }
    }

    /// Ctrl+C and Ctrl+U: the draft goes where Up, Ctrl+Y and undo find it.
    fn put_aside(&mut self) {
        let draft = self.editor.text();
        self.editor.kill_all();
        self.edited();
        self.history.push(&draft);
    }

    fn show(&mut self, text: &str) {
        let folded = self.pastes.fold_above(text, FOLD_WHOLE.0, FOLD_WHOLE.1);
        self.editor.replace(&folded);
        let browsing = std::mem::take(&mut self.history);
        self.edited();
        self.history = browsing;
        self.completion = None;
    }

    /// Ends a search and brings the draft back. False when there was none.
    fn end_search(&mut self) -> bool {
        let Some(search) = self.search.take() else { return false };
        self.show(&search.draft);
        true
    }

    fn search_again(&mut self, from: usize) {
        let Some(search) = &mut self.search else { return };
        let found =
            if search.words.is_empty() { None } else { self.history.search(&search.words, from) };
        match found {
            Some((place, entry)) => {
                search.place = Some(place);
                let entry = entry.to_owned();
                self.show(&entry);
            }
            None if from == 0 => search.place = None,
            // No older match: stay on the one that is shown.
            None => {}
        }
    }

    fn lay_out(&mut self, width: usize) {
        self.width = width;
        let wanted = (self.editor.revision(), width);
        if self.layout_for != Some(wanted) {
            self.layout = Layout::new(self.editor.lines(), width);
            self.layout_for = Some(wanted);
        }
    }

    /// Moves the caret by rows on the screen. False when there is no such row.
    fn vertical(&mut self, down: bool) -> bool {
        self.lay_out(self.width);
        let lines = self.editor.lines();
        let (row, column) = self.layout.place(lines, self.editor.caret());
        let goal = self.goal.unwrap_or(column);
        let target = if down { row + 1 } else { row.wrapping_sub(1) };
        if target >= self.layout.rows.len() {
            return false;
        }
        let caret: Caret = self.layout.caret_at(lines, target, goal);
        self.editor.jump(caret);
        self.goal = Some(goal);
        true
    }
}

#[cfg(test)]
mod tests;
