//! Keys, pastes, the mouse: who takes them.

use std::time::Instant;

use claw_runtime::NoticeLevel;
use claw_runtime::driver::Command;
use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

use super::{App, ENDED, Effect, HINT, QUIT_WINDOW};
use crate::composer::ComposerOutcome;
use crate::dialog::{Answer, DialogOutcome};
use crate::keymap::Action;

/// Lines a turn of the wheel moves.
const WHEEL_LINES: i32 = 3;

impl App {
    pub(super) fn on_terminal(&mut self, now: Instant, event: &Event, effects: &mut Vec<Effect>) {
        match event {
            Event::FocusGained => self.focused = true,
            Event::FocusLost => self.focused = false,
            Event::Resize(width, height) => self.resize_worker(*width, *height, effects),
            event if self.is_worker_shown() => self.type_to_worker(now, event, effects),
            Event::Key(key) if key.kind == KeyEventKind::Release => {}
            Event::Key(key) if is_ctrl_c(key) => self.on_ctrl_c(now, effects),
            Event::Key(_) | Event::Paste(_) | Event::Mouse(_) => {
                self.on_input(now, event, effects);
            }
        }
    }

    /// Focus order: picker, permission dialog, composer, keymap.
    fn on_input(&mut self, now: Instant, event: &Event, effects: &mut Vec<Effect>) {
        if self.quit_armed_until.is_some() {
            // The hint would promise what no longer holds.
            self.clear_hint();
        }
        if let Some(picker) = self.picker.take() {
            return self.on_picker_event(now, picker, event, effects);
        }
        if let Event::Key(key) = event
            && self.permissions.is_waiting()
            && !self.permissions.is_focused()
            && !self.composer.is_completing()
            && self.keymap.action(key) == Some(Action::FocusDialog)
        {
            self.permissions.focus();
            return;
        }
        match self.permissions.handle(now, event) {
            DialogOutcome::Ignored => {}
            DialogOutcome::Consumed => return,
            DialogOutcome::Answered(answer) => return self.answered(now, &answer),
            DialogOutcome::Edit(id, text) => {
                effects.push(Effect::EditRequest(id, text));
                return;
            }
        }
        if let Event::Mouse(mouse) = event {
            // What lies under a dialog is not what was clicked at.
            if !self.permissions.is_focused() {
                self.on_mouse(*mouse);
            }
            return;
        }
        match self.composer.handle(now, event) {
            ComposerOutcome::Submit(text) => self.submit(text, effects),
            ComposerOutcome::SubmitLater(text) => self.submit_later(text, effects),
            ComposerOutcome::Command { action, line } => self.execute(now, action, &line, effects),
            ComposerOutcome::Cancel | ComposerOutcome::Consumed => {}
            ComposerOutcome::Exit => self.quit(effects),
            ComposerOutcome::ProviderSwap => self.act(now, Action::SwapBackend, effects),
            ComposerOutcome::TeamToggle => self.act(now, Action::ToggleTeam, effects),
            ComposerOutcome::Ignored => {
                if let Event::Key(key) = event
                    && let Some(action) = self.keymap.action(key)
                {
                    self.act(now, action, effects);
                }
            }
        }
    }

    fn answered(&mut self, now: Instant, answer: &Answer) {
        if answer.late {
            let text = format!(
                "The request of {} was no longer waiting: the answer had no effect.",
                answer.tool_name
            );
            self.notice(now, NoticeLevel::Warning, &text);
        }
    }

    /// Ctrl+C never loses anything: it stops a turn, or puts the draft aside so that it can be had
    /// back; only a second press leaves.
    fn on_ctrl_c(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let armed = self.quit_armed_until.is_some_and(|until| now < until);
        // The turn may have ended in between and have left text in the composer.
        if armed && (self.turn.is_some() || self.composer.is_empty()) {
            return self.quit(effects);
        }
        let had_picker = self.picker.take().is_some();
        if self.turn.is_none() {
            if had_picker {
                return;
            }
            let key = Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
            if self.composer.handle(now, &key) == ComposerOutcome::Exit {
                self.quit(effects);
            }
            return;
        }
        self.interrupt(now, effects);
        self.hint(now, "stopping · Ctrl+C again leaves", QUIT_WINDOW);
        self.quit_armed_until = Some(now + QUIT_WINDOW);
    }

    fn on_mouse(&mut self, mouse: MouseEvent) {
        match mouse.kind {
            MouseEventKind::ScrollUp => self.transcript.scroll_lines(-WHEEL_LINES),
            MouseEventKind::ScrollDown => self.transcript.scroll_lines(WHEEL_LINES),
            MouseEventKind::Down(MouseButton::Left) => {
                self.transcript.toggle_at(mouse.column, mouse.row);
            }
            _ => {}
        }
    }

    pub(super) fn act(&mut self, now: Instant, action: Action, effects: &mut Vec<Effect>) {
        match action {
            Action::Interrupt if self.status.goes_on_by_itself() => {
                effects.push(Effect::Send(Command::StopUnasked));
            }
            Action::Interrupt if self.turn.is_none() => self.transcript.clear_focus(),
            Action::Interrupt => self.interrupt(now, effects),
            Action::ScrollPageUp => self.transcript.page_up(),
            Action::ScrollPageDown => self.transcript.page_down(),
            Action::ScrollLineUp => self.transcript.scroll_lines(-1),
            Action::ScrollLineDown => self.transcript.scroll_lines(1),
            Action::ScrollTop => self.transcript.to_start(),
            Action::ScrollBottom => self.transcript.to_end(),
            Action::ToggleThinking => {
                let open = self.transcript.toggle_all_thinking();
                let text = if open { "thinking is shown" } else { "thinking is folded" };
                self.hint(now, text, HINT);
            }
            Action::ToggleDetails => {
                let open = !self.transcript.tool_details();
                self.transcript.set_tool_details(open);
                let text = if open { "tool calls are shown" } else { "tool calls are folded" };
                self.hint(now, text, HINT);
            }
            Action::FocusPreviousCell => {
                self.transcript.focus_prev();
            }
            Action::FocusNextCell => {
                self.transcript.focus_next();
            }
            Action::ToggleCell => {
                self.transcript.toggle_focused();
            }
            Action::CopyAnswer => {
                let selected = self.transcript.focused_text();
                self.copy(now, selected.or_else(|| self.transcript.last_answer()), effects);
            }
            Action::OpenEditor => effects.push(Effect::OpenEditor(self.composer.editor_text())),
            Action::Suspend => effects.push(Effect::Suspend),
            Action::Redraw => effects.push(Effect::Redraw),
            Action::SwapBackend if self.has_ended() => self.hint(now, ENDED, HINT),
            Action::SwapBackend => {
                effects.push(Effect::Send(Command::SetBackend { name: None }));
                if self.turn.is_some() {
                    self.hint_for_turn(now, "the backend changes after this turn", HINT);
                }
            }
            Action::Help => self.show_help(now),
            Action::FocusDialog => {
                self.permissions.focus();
            }
            Action::ToggleWorkerScreen | Action::ToggleTeam => self.look_at_worker(effects),

            Action::ToggleMouse => {
                self.mouse = !self.mouse;
                effects.push(Effect::CaptureMouse(self.mouse));
                let text = if self.mouse {
                    "mouse: wheel scrolls, click opens cells (Shift selects text)"
                } else {
                    "mouse: the terminal selects text; keys scroll"
                };
                self.hint(now, text, HINT);
            }
        }
    }

    pub(super) fn copy(&mut self, now: Instant, text: Option<String>, effects: &mut Vec<Effect>) {
        match text {
            Some(text) => effects.push(Effect::Copy(text)),
            None => self.hint(now, "There is no answer to copy yet.", HINT),
        }
    }
}

fn is_ctrl_c(key: &KeyEvent) -> bool {
    // With Caps Lock on some terminals report the capital letter.
    matches!(key.code, KeyCode::Char('c' | 'C')) && key.modifiers == KeyModifiers::CONTROL
}
