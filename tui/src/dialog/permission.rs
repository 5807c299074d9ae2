//! The question "may this tool run?", in a form that typing cannot answer.
//!
//! A request first *waits*: a notice shows it, all keys stay with the composer. It takes the focus
//! once the person has stopped typing for [`QUIET`] and it has been there for [`SETTLE`], or when
//! they ask for it. Focused, it knows only keys that nobody types ahead: arrows, Tab, Enter, Esc
//! and the paging keys. Anything else goes back to the draft and takes the focus away again. Deny
//! is selected whenever it gets the focus, and what allows is out of reach until the whole input
//! has been on the screen. There are no letter hotkeys, on purpose.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use claw_runtime::permissions::{
    PermissionPromptDecision, PermissionReply, PermissionRequest, Question, QuestionAnswer,
    RequestId, RequestKind,
};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEventKind};

use super::body::Body;
use super::choice::{Choice, choices};
use super::edit;
use crate::composer::editor::Editor;

/// How long the composer must have been left alone.
pub const QUIET: Duration = Duration::from_millis(600);
/// How long a request must have been in front before it can take the focus or an answer.
pub const SETTLE: Duration = Duration::from_millis(300);

/// Rows that the wheel moves.
const WHEEL_ROWS: usize = 3;

/// What a key meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialogOutcome {
    /// Not for the dialog: give it to the composer.
    Ignored,
    Consumed,
    Answered(Answer),
    /// Open this text in the person's editor; the result comes back through
    /// [`PermissionDialog::edited`].
    Edit(RequestId, String),
}

/// A request was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub id: RequestId,
    pub tool_name: String,
    pub decision: PermissionPromptDecision,
    /// The request was no longer waiting: the answer had no effect, and the person must be told.
    pub late: bool,
}

pub(super) struct Waiting {
    pub(super) request: PermissionRequest,
    reply: PermissionReply,
    pub(super) body: Body,
    pub(super) since: Instant,
    /// The input or the plan as the person has changed it.
    pub(super) edited: Option<String>,
    /// Answers to the first of several questions.
    answers: Vec<QuestionAnswer>,
    /// Options that are marked where several may be chosen.
    pub(super) marked: Vec<usize>,
}

impl Waiting {
    /// The question that is asked now.
    pub(super) fn question(&self) -> Option<&Question> {
        match &self.request.kind {
            RequestKind::Questions(questions) => questions.get(self.answers.len()),
            _ => None,
        }
    }

    /// Its place among the questions of this request, and how many there are.
    pub(super) fn question_place(&self) -> Option<(usize, usize)> {
        match &self.request.kind {
            RequestKind::Questions(questions) => Some((self.answers.len() + 1, questions.len())),
            _ => None,
        }
    }

    /// What an editor is to open on.
    fn editable_text(&self) -> String {
        match &self.request.kind {
            RequestKind::Plan { text } => self.edited.clone().unwrap_or_else(|| text.clone()),
            _ => edit::text_of(self.edited.as_ref().unwrap_or(&self.request.input)),
        }
    }

    /// The answer that lets it go on as it stands.
    fn approval(&self) -> PermissionPromptDecision {
        match (&self.request.kind, &self.edited) {
            (RequestKind::Plan { text }, edited) => {
                let text = edited.as_ref().unwrap_or(text).clone();
                PermissionPromptDecision::ApprovePlan { text }
            }
            (_, Some(input)) => PermissionPromptDecision::AllowInput { input: input.clone() },
            (_, None) => PermissionPromptDecision::AllowOnce,
        }
    }

    fn rebuild(&mut self) {
        self.body = Body::of(self);
    }
}

/// All waiting requests, oldest first; the first is the one that is asked.
pub struct PermissionDialog {
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) focused: bool,
    /// When the request in front came to the front.
    front_since: Option<Instant>,
    /// The last key that went to the composer.
    last_typed: Option<Instant>,
    /// Enter and Esc mean nothing until then: they were meant for a request that is gone.
    guard_until: Option<Instant>,
    pub(super) choice: Choice,
    /// The field for a reason, while it is open.
    pub(super) reason: Option<Editor>,
    pub(super) scroll: usize,
    /// Rows of input on the screen, from the last drawing.
    pub(super) page: usize,
    /// The end of the input has been on the screen.
    pub(super) seen_end: bool,
    /// How many requests were answered or retired since the queue was last empty.
    pub(super) done: usize,
}

impl Default for PermissionDialog {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            focused: false,
            front_since: None,
            last_typed: None,
            guard_until: None,
            choice: Choice::Deny,
            reason: None,
            scroll: 0,
            page: 1,
            seen_end: false,
            done: 0,
        }
    }
}

impl PermissionDialog {
    /// A request arrived. It waits behind those that came before.
    pub fn push(&mut self, request: PermissionRequest, reply: PermissionReply, now: Instant) {
        let mut waiting = Waiting {
            request,
            reply,
            body: Body::default(),
            since: now,
            edited: None,
            answers: Vec::new(),
            marked: Vec::new(),
        };
        waiting.rebuild();
        self.waiting.push_back(waiting);
        if self.waiting.len() == 1 {
            self.done = 0;
            self.bring_to_front(now);
        }
    }

    /// The request is no longer open. True when it was here. Its reply is dropped, which denies
    /// where anybody still listens.
    pub fn retire(&mut self, id: RequestId, now: Instant) -> bool {
        let Some(index) = self.waiting.iter().position(|waiting| waiting.request.id == id) else {
            return false;
        };
        self.waiting.remove(index);
        self.done += 1;
        if index == 0 {
            if self.focused {
                self.guard_until = Some(now + SETTLE);
            }
            self.bring_to_front(now);
        }
        true
    }

    /// The turn is over: drops its requests, which denies them, and those whose answer nobody waits
    /// for. A sub-agent in the background may ask on.
    pub fn end_turn(&mut self, now: Instant) {
        let over =
            |waiting: &&Waiting| waiting.request.asker.agent.is_none() || waiting.reply.is_closed();
        let over = self.waiting.iter().filter(over).map(|waiting| waiting.request.id);
        for id in over.collect::<Vec<_>>() {
            self.retire(id, now);
        }
    }

    /// Drops all requests, which denies them.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.focused = false;
        self.reset();
    }

    fn bring_to_front(&mut self, now: Instant) {
        self.front_since = Some(now);
        self.scroll = 0;
        self.seen_end = false;
        self.reset();
        if self.waiting.is_empty() {
            self.focused = false;
        }
    }

    /// What every new focus begins with.
    fn reset(&mut self) {
        self.choice = Choice::Deny;
        self.reason = None;
    }

    /// A request waits for an answer.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The dialog has the keys.
    pub fn is_focused(&self) -> bool {
        self.focused
    }

    /// How many requests wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The request that is asked.
    pub fn front(&self) -> Option<&PermissionRequest> {
        self.waiting.front().map(|waiting| &waiting.request)
    }

    /// What the request in front can be answered with, in the order of the screen.
    pub(super) fn choices(&self) -> Vec<Choice> {
        self.waiting.front().map(choices).unwrap_or_default()
    }

    /// Another request that waits comes to the front, by age.
    fn jump(&mut self, now: Instant, forward: bool) -> DialogOutcome {
        if self.waiting.len() > 1 {
            if forward {
                self.waiting.rotate_left(1);
            } else {
                self.waiting.rotate_right(1);
            }
            self.guard_until = Some(now + SETTLE);
            self.bring_to_front(now);
        }
        DialogOutcome::Consumed
    }

    /// The place of the request in front among all that wait, by age, from 0.
    pub(super) fn age_place(&self) -> usize {
        let Some(front) = self.front() else { return 0 };
        self.waiting.iter().filter(|other| other.request.id < front.id).count()
    }

    /// The person asked for the dialog. True when there is one.
    pub fn focus(&mut self) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        if !self.focused {
            self.focused = true;
            self.reset();
        }
        true
    }

    // Time

    /// When the waiting request takes the focus, if nothing is typed until then.
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.focused || self.waiting.is_empty() {
            return None;
        }
        let settled = self.front_since? + SETTLE;
        Some(self.last_typed.map_or(settled, |typed| settled.max(typed + QUIET)))
    }

    /// To be called when the deadline has passed: the dialog takes the focus.
    pub fn tick(&mut self, now: Instant) {
        if self.next_deadline().is_some_and(|due| now >= due) {
            self.focus();
        }
    }

    // Keys

    /// Sees every key before the composer does: also while nothing waits, because a request that
    /// arrives next must know when the person typed last.
    pub fn handle(&mut self, now: Instant, event: &Event) -> DialogOutcome {
        match event {
            Event::Key(key) if key.kind == KeyEventKind::Release => {
                if self.focused {
                    DialogOutcome::Consumed
                } else {
                    DialogOutcome::Ignored
                }
            }
            Event::Key(key) => self.key(now, key),
            Event::Paste(text) => self.paste(now, text),
            Event::Mouse(mouse) if self.focused => match mouse.kind {
                MouseEventKind::ScrollUp => self.scroll_by(false, WHEEL_ROWS),
                MouseEventKind::ScrollDown => self.scroll_by(true, WHEEL_ROWS),
                _ => DialogOutcome::Ignored,
            },
            _ => DialogOutcome::Ignored,
        }
    }

    /// A key went elsewhere without passing here (to an open list): the person is typing.
    pub fn note_typed(&mut self, now: Instant) {
        self.last_typed = Some(now);
    }

    fn key(&mut self, now: Instant, key: &KeyEvent) -> DialogOutcome {
        let guarded = self.guard_until.take().filter(|until| now < *until);
        let decides = matches!(key.code, KeyCode::Enter | KeyCode::Esc) && key.modifiers.is_empty();
        if self.focused && decides && key.kind == KeyEventKind::Repeat {
            // A key that is held down was meant for what was there when it went down.
            self.guard_until = guarded;
            return DialogOutcome::Consumed;
        }
        if guarded.is_some() && decides {
            self.guard_until = guarded;
            return DialogOutcome::Consumed;
        }
        if !self.focused {
            self.last_typed = Some(now);
            return DialogOutcome::Ignored;
        }
        if self.reason.is_some() {
            return self.reason_key(now, key);
        }
        let shift_only = key.modifiers == KeyModifiers::SHIFT;
        if !(key.modifiers.is_empty() || shift_only && key.code == KeyCode::BackTab) {
            return self.other_key(now, key);
        }
        match key.code {
            KeyCode::Up | KeyCode::BackTab => self.choose(false),
            KeyCode::Down | KeyCode::Tab => self.choose(true),
            KeyCode::Left => self.jump(now, false),
            KeyCode::Right => self.jump(now, true),
            KeyCode::PageUp => self.scroll_by(false, self.page.max(2) - 1),
            KeyCode::PageDown => self.scroll_by(true, self.page.max(2) - 1),
            KeyCode::Home => self.scroll_by(false, usize::MAX),
            KeyCode::End => self.scroll_by(true, usize::MAX),
            KeyCode::Enter => self.activate(now),
            KeyCode::Esc => self.answer(now, PermissionPromptDecision::Deny { reason: None }),
            _ => self.other_key(now, key),
        }
    }

    /// A key that is not the dialog's. What edits was meant for the draft: the focus goes back.
    fn other_key(&mut self, now: Instant, key: &KeyEvent) -> DialogOutcome {
        let edits = matches!(
            key.code,
            KeyCode::Char(_)
                | KeyCode::Backspace
                | KeyCode::Delete
                | KeyCode::Enter
                | KeyCode::Insert
        );
        if edits {
            self.give_back(now);
        }
        DialogOutcome::Ignored
    }

    fn give_back(&mut self, now: Instant) {
        self.focused = false;
        self.last_typed = Some(now);
        self.reset();
    }

    fn paste(&mut self, now: Instant, text: &str) -> DialogOutcome {
        if let Some(field) = self.reason.as_mut().filter(|_| self.focused) {
            field.insert_str(&crate::sanitise::single_line(text));
            return DialogOutcome::Consumed;
        }
        self.give_back(now);
        DialogOutcome::Ignored
    }

    fn choose(&mut self, forward: bool) -> DialogOutcome {
        self.choice = self.choice.step(forward, &self.choices());
        DialogOutcome::Consumed
    }

    /// Drawing bounds the position by what there is.
    fn scroll_by(&mut self, down: bool, rows: usize) -> DialogOutcome {
        self.scroll =
            if down { self.scroll.saturating_add(rows) } else { self.scroll.saturating_sub(rows) };
        DialogOutcome::Consumed
    }

    /// The field for a reason or an answer: the only place where letters stay in the dialog, after Enter
    /// on the choice that opens it. Only Enter confirms.
    fn reason_key(&mut self, now: Instant, key: &KeyEvent) -> DialogOutcome {
        let Some(field) = self.reason.as_mut() else { return DialogOutcome::Ignored };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let plain = !key.modifiers.intersects(!KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Enter if plain => {
                let text = field.text().trim().to_owned();
                if self.choice == Choice::Other {
                    return if text.is_empty() {
                        DialogOutcome::Consumed
                    } else {
                        self.answer_question(now, text)
                    };
                }
                let reason = (!text.is_empty()).then_some(text);
                return self.answer(now, PermissionPromptDecision::Deny { reason });
            }
            KeyCode::Esc => self.reason = None,
            KeyCode::Char(c) if plain && !c.is_control() => field.insert_char(c),
            KeyCode::Char('u') if control => field.kill_all(),
            KeyCode::Char('w') if control => field.kill_word_left(),
            KeyCode::Char('a') if control => field.line_start(),
            KeyCode::Char('e') if control => field.line_end(),
            // Interrupting must stay possible from everywhere.
            KeyCode::Char('c') if control => return DialogOutcome::Ignored,
            KeyCode::Backspace => field.backspace(),
            KeyCode::Delete => field.delete(),
            KeyCode::Left => field.left(),
            KeyCode::Right => field.right(),
            KeyCode::Home => field.line_start(),
            KeyCode::End => field.line_end(),
            KeyCode::PageUp => return self.scroll_by(false, self.page.max(2) - 1),
            KeyCode::PageDown => return self.scroll_by(true, self.page.max(2) - 1),
            _ => {}
        }
        DialogOutcome::Consumed
    }

    fn activate(&mut self, now: Instant) -> DialogOutcome {
        match self.choice {
            Choice::Deny => self.answer(now, PermissionPromptDecision::Deny { reason: None }),
            Choice::DenyWithReason => {
                self.reason = Some(Editor::default());
                DialogOutcome::Consumed
            }
            Choice::Edit => self.waiting.front().map_or(DialogOutcome::Consumed, |front| {
                DialogOutcome::Edit(front.request.id, front.editable_text())
            }),
            // The hint on the screen says what is missing.
            _ if !self.seen_end => DialogOutcome::Consumed,
            Choice::AllowOnce => {
                let approval = self.waiting.front().map(Waiting::approval);
                approval.map_or(DialogOutcome::Consumed, |approval| self.answer(now, approval))
            }
            Choice::AllowForSession => self.answer(now, PermissionPromptDecision::AllowForSession),
            Choice::Option(at) => self.choose_option(now, at),
            Choice::Other => {
                self.reason = Some(Editor::default());
                DialogOutcome::Consumed
            }
            Choice::Done => {
                let Some(front) = self.waiting.front() else { return DialogOutcome::Consumed };
                let marked = front.marked.iter().filter_map(|at| {
                    front.question().and_then(|question| question.options.get(*at))
                });
                let labels: Vec<&str> = marked.map(|option| option.label.as_str()).collect();
                if labels.is_empty() {
                    return DialogOutcome::Consumed;
                }
                let answer = labels.join(", ");
                self.answer_question(now, answer)
            }
        }
    }

    /// An answer that is offered: it is the answer, or one of several that are marked.
    fn choose_option(&mut self, now: Instant, at: usize) -> DialogOutcome {
        let Some(front) = self.waiting.front_mut() else { return DialogOutcome::Consumed };
        let Some(question) = front.question() else { return DialogOutcome::Consumed };
        let Some(option) = question.options.get(at) else { return DialogOutcome::Consumed };
        if !question.multi_select {
            let label = option.label.clone();
            return self.answer_question(now, label);
        }
        if front.marked.contains(&at) {
            front.marked.retain(|marked| *marked != at);
        } else {
            front.marked.push(at);
            front.marked.sort_unstable();
        }
        DialogOutcome::Consumed
    }

    /// One question is answered; the next one comes up, or all answers go off together.
    fn answer_question(&mut self, now: Instant, answer: String) -> DialogOutcome {
        let Some(front) = self.waiting.front_mut() else { return DialogOutcome::Consumed };
        let Some(question) = front.question() else { return DialogOutcome::Consumed };
        let question = question.question.clone();
        front.answers.push(QuestionAnswer { question, answer });
        front.marked.clear();
        if front.question().is_none() {
            let answers = std::mem::take(&mut front.answers);
            return self.answer(now, PermissionPromptDecision::Answers(answers));
        }
        front.rebuild();
        self.guard_until = Some(now + SETTLE);
        self.bring_to_front(now);
        DialogOutcome::Consumed
    }

    /// The person's editor was closed: what it holds now is to be looked at and decided about again.
    /// The error says why it cannot run; nothing has changed then.
    pub fn edited(&mut self, id: RequestId, text: &str, now: Instant) -> Result<(), String> {
        let gone = "the request was no longer waiting; your change had no effect";
        let waiting = self.waiting.iter_mut().find(|waiting| waiting.request.id == id);
        let waiting = waiting.ok_or_else(|| gone.to_owned())?;
        let edited = match &waiting.request.kind {
            RequestKind::Plan { text: plan } if text.trim() == plan.trim() => None,
            RequestKind::Plan { .. } if text.trim().is_empty() => {
                return Err("an empty plan cannot be approved".to_owned());
            }
            RequestKind::Plan { .. } => Some(text.trim_end().to_owned()),
            _ => {
                let input = edit::input_of(&waiting.request.input, text)?;
                (input != waiting.request.input).then_some(input)
            }
        };
        waiting.edited = edited;
        waiting.rebuild();
        self.bring_to_front(now);
        Ok(())
    }

    /// Hands the answer to the request in front; the next one comes up, still focused, but deaf to
    /// Enter and Esc for a moment.
    fn answer(&mut self, now: Instant, decision: PermissionPromptDecision) -> DialogOutcome {
        let Some(Waiting { request, reply, .. }) = self.waiting.pop_front() else {
            return DialogOutcome::Consumed;
        };
        let late = reply.answer(decision.clone()).is_err();
        self.done += 1;
        self.guard_until = (!self.waiting.is_empty()).then(|| now + SETTLE);
        self.bring_to_front(now);
        DialogOutcome::Answered(Answer {
            id: request.id,
            tool_name: request.tool_name,
            decision,
            late,
        })
    }
}

#[cfg(test)]
mod tests;
