//! Lists to choose from: sessions, modes, models, themes. What a choice means is known here.

use std::time::Instant;

use claw_runtime::NoticeLevel;
use claw_runtime::driver::Command;
use claw_runtime::permissions::PermissionMode;
use claw_runtime::session::SessionEntry;
use crossterm::event::Event;

use super::{App, ENDED, Effect, HINT};
use crate::dialog::{Picker, PickerOutcome, PickerRow, name_rows, session_rows};
use crate::keymap::Action;
use crate::theme::Theme;

/// What is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    Session(String),
    Mode(PermissionMode),
    Model(String),
    Theme(String),
}

pub(super) type OpenPicker = Picker<Choice>;

impl App {
    pub(super) fn on_picker_event(
        &mut self,
        now: Instant,
        mut picker: OpenPicker,
        event: &Event,
        effects: &mut Vec<Effect>,
    ) {
        // A question that waits must not take the focus from under these keys.
        self.permissions.note_typed(now);
        match picker.handle(event) {
            PickerOutcome::Consumed => self.picker = Some(picker),
            PickerOutcome::Ignored => {
                self.picker = Some(picker);
                self.act_behind_picker(now, event, effects);
            }
            PickerOutcome::Closed => {}
            PickerOutcome::Chosen(choice) => self.chosen(now, choice, effects),
        }
    }

    /// What a list leaves alone may still concern the whole screen.
    fn act_behind_picker(&mut self, now: Instant, event: &Event, effects: &mut Vec<Effect>) {
        if let Event::Key(key) = event
            && let Some(action @ (Action::Suspend | Action::Redraw)) = self.keymap.action(key)
        {
            self.act(now, action, effects);
        }
    }

    fn chosen(&mut self, now: Instant, choice: Choice, effects: &mut Vec<Effect>) {
        let command = match choice {
            Choice::Theme(name) => return self.set_theme(now, &name),
            Choice::Session(reference) => Command::Open { reference },
            Choice::Mode(mode) => Command::SetMode { mode },
            Choice::Model(model) => Command::SetModel { model },
        };
        if self.turn.is_some() {
            return self.hint_for_turn(now, "a turn runs: choose again when it has ended", HINT);
        }
        if self.has_ended() {
            return self.notice(now, NoticeLevel::Warning, ENDED);
        }
        effects.push(Effect::Send(command));
    }

    pub(super) fn pick_mode(&mut self) {
        let current = self.status.runtime().map(|status| status.mode);
        let rows = PermissionMode::ALL.into_iter().map(|mode| PickerRow {
            value: Choice::Mode(mode),
            label: mode.as_str().to_owned(),
            detail: mode.describe().to_owned(),
            current: current == Some(mode),
        });
        self.picker = Some(Picker::new("Permission mode", rows.collect()));
    }

    pub(super) fn pick_model(&mut self, now: Instant) {
        let Some(status) = self.status.runtime().filter(|status| !status.models.is_empty()) else {
            let text = "This backend offers no list of models. /model NAME takes any name.";
            return self.notice(now, NoticeLevel::Info, text);
        };
        let rows = name_rows(status.models.iter().cloned(), Some(&status.model));
        self.picker = Some(Picker::new("Model", choices(rows, Choice::Model)));
    }

    pub(super) fn pick_theme(&mut self) {
        let rows = name_rows(Theme::names().map(str::to_owned), Some(&self.theme.name));
        self.picker = Some(Picker::new("Theme", choices(rows, Choice::Theme)));
    }

    pub(super) fn pick_session(&mut self, now: Instant, sessions: &[SessionEntry], now_ms: u64) {
        if sessions.is_empty() {
            let text = "There is no session on disk yet: one is kept from its first message on.";
            return self.notice(now, NoticeLevel::Info, text);
        }
        let rows = session_rows(sessions, now_ms);
        self.picker = Some(Picker::new("Sessions", choices(rows, Choice::Session)));
    }
}

fn choices(
    rows: Vec<PickerRow<String>>,
    choice: impl Fn(String) -> Choice,
) -> Vec<PickerRow<Choice>> {
    rows.into_iter()
        .map(|row| PickerRow {
            value: choice(row.value),
            label: row.label,
            detail: row.detail,
            current: row.current,
        })
        .collect()
}
