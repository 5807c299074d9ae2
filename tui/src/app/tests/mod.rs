//! The whole application without a terminal: events in, the screen as text and effects as words out.
//!
//! Time is a number that a test moves on. What the parts do by themselves is tested with them; here
//! it is whether they work together.

mod commands;
mod deadlines;
mod keys;
mod permission;
mod screen;
mod sessions;
mod status;
mod steering;
mod turns;
mod welcome;
mod worker;

use std::sync::Arc;

use claw_runtime::api::{ApiError, StopReason};
use claw_runtime::driver::RuntimeStatus;
use claw_runtime::permissions::{
    PermissionMode, PermissionPromptDecision, PermissionReply, PermissionRequest, RequestId,
};
use claw_runtime::session::{ConversationMessage, MessageRole, SessionEntry, SessionView};
use claw_runtime::tools::ToolOutcome;
use claw_runtime::usage::{TokenUsage, UsageReport};
use claw_runtime::{RuntimeError, TuiEvent, TurnStop};
use crossterm::event::{Event, KeyModifiers, MouseEvent, MouseEventKind};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tokio::sync::oneshot::Receiver;

use super::*;
use crate::markdown::PlainCode;
use crate::testing::{key, request, shown, summary};

/// An application with a clock and a screen of its own.
struct Stage {
    app: App,
    now: Instant,
    terminal: Terminal<TestBackend>,
}

impl Stage {
    /// Before the runtime has said anything.
    fn before_the_runtime() -> Self {
        let (app, effects) = App::new(options(None));
        assert!(effects.is_empty());
        let terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        Self { app, now: Instant::now(), terminal }
    }

    /// Ready, in a session without messages.
    fn new() -> Self {
        let mut stage = Self::before_the_runtime();
        stage.tell(opened("s-1", &[], &[]));
        stage.tell(TuiEvent::StatusChanged { status: runtime_status() });
        stage
    }

    /// In the middle of a turn that has said nothing yet.
    fn in_a_turn() -> Self {
        let mut stage = Self::new();
        assert_eq!(stage.line("hello"), "submit hello");
        stage.begin("hello");
        stage
    }

    fn sized(mut self, width: u16, height: u16) -> Self {
        self.terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        self
    }

    // In

    fn update(&mut self, event: Inbox) -> String {
        words(&self.app.update(self.now, event))
    }

    fn tell(&mut self, event: TuiEvent) -> String {
        self.update(Inbox::Runtime(event))
    }

    /// A key as one writes it: `ctrl+c`, `pageup`, `x`.
    fn key(&mut self, name: &str) -> String {
        self.update(Inbox::Terminal(Event::Key(key(name))))
    }

    fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            let effects = self.key(&c.to_string());
            assert_eq!(effects, "", "typing only types");
        }
    }

    /// Types a line and sends it.
    fn line(&mut self, text: &str) -> String {
        self.type_text(text);
        self.key("enter")
    }

    fn wheel(&mut self, kind: MouseEventKind) -> String {
        let mouse = MouseEvent { kind, column: 5, row: 5, modifiers: KeyModifiers::NONE };
        self.update(Inbox::Terminal(Event::Mouse(mouse)))
    }

    fn begin(&mut self, input: &str) {
        self.tell(TuiEvent::TurnStarted { input: input.to_owned(), retry: false });
    }

    fn text(&mut self, text: &str) {
        self.tell(TuiEvent::TextDelta { text: text.to_owned() });
    }

    fn end(&mut self) -> String {
        self.end_by(TurnStop::Finished(StopReason::EndTurn))
    }

    fn end_by(&mut self, stop: TurnStop) -> String {
        self.tell(TuiEvent::TurnCompleted { summary: summary(stop) })
    }

    fn fail(&mut self) -> String {
        let error = RuntimeError::Api(ApiError::Overloaded { message: "busy".into() });
        self.tell(TuiEvent::TurnFailed {
            error: Arc::new(error),
            summary: summary(TurnStop::Failed),
        })
    }

    fn start_tool(&mut self, id: &str, name: &str) {
        self.tell(TuiEvent::ToolStarted {
            iteration: 1,
            id: id.to_owned(),
            name: name.to_owned(),
            input: "{}".to_owned(),
        });
    }

    fn end_tool(&mut self, id: &str, name: &str) {
        self.tell(TuiEvent::ToolEnded {
            id: id.to_owned(),
            is_error: false,
            elapsed: Duration::from_secs(1),
        });
        self.tell(TuiEvent::ToolResult {
            iteration: 1,
            max_iterations: 50,
            id: id.to_owned(),
            name: name.to_owned(),
            input: "{}".to_owned(),
            outcome: ToolOutcome::ok("done"),
            denied: false,
        });
    }

    /// The runtime asks whether this command may run.
    fn ask(&mut self, command: &str) -> (RequestId, Receiver<PermissionPromptDecision>) {
        let (reply, answer) = PermissionReply::channel();
        let input = format!("{{\"command\":\"{command}\"}}");
        let request =
            PermissionRequest { tool_use_id: command.to_owned(), ..request("bash", &input) };
        let id = request.id;
        self.tell(TuiEvent::PermissionRequired { request, reply });
        (id, answer)
    }

    /// Lets time pass as the loop does: it wakes up when a deadline has come, and draws.
    fn wait(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while let Some(deadline) = self.app.next_deadline(self.now).filter(|at| *at <= until) {
            self.now = deadline.max(self.now);
            self.app.tick(self.now);
            self.screen();
            let next = self.app.next_deadline(self.now);
            assert!(next.is_none_or(|next| next > self.now), "the loop would spin");
        }
        self.now = until;
    }

    // Out

    /// The screen as text, without blanks at the ends.
    fn screen(&mut self) -> String {
        let now = self.now;
        let app = &mut self.app;
        self.terminal.draw(|frame| app.draw(now, frame)).unwrap();
        shown(self.terminal.backend().buffer(), None)
    }

    /// The last rows.
    fn bottom(&mut self, rows: usize) -> String {
        let screen = self.screen();
        let all: Vec<&str> = screen.lines().collect();
        all[all.len().saturating_sub(rows)..].join("\n")
    }

    /// The last row.
    fn status(&mut self) -> String {
        self.screen().lines().next_back().unwrap_or_default().trim().to_owned()
    }

    /// What is going on, according to the last row: behind the last wide gap.
    fn activity(&mut self) -> String {
        let status = self.status();
        status.rsplit("  ").next().unwrap_or_default().trim().to_owned()
    }

    fn draft(&self) -> String {
        self.app.composer.text()
    }

    #[track_caller]
    fn shows(&mut self, text: &str) {
        let screen = self.screen();
        assert!(screen.contains(text), "{text:?} is not on the screen:\n{screen}");
    }

    #[track_caller]
    fn lacks(&mut self, text: &str) {
        let screen = self.screen();
        assert!(!screen.contains(text), "{text:?} is on the screen:\n{screen}");
    }
}

fn options(first_prompt: Option<&str>) -> AppOptions {
    AppOptions {
        theme: Theme::plain(),
        depth: ColourDepth::TrueColour,
        keymap: Keymap::default(),
        colours: Box::new(PlainCode),
        first_prompt: first_prompt.map(str::to_owned),
        mouse: true,
    }
}

fn runtime_status() -> RuntimeStatus {
    RuntimeStatus {
        backend: "anthropic".to_owned(),
        backend_note: None,
        model: "claude-x".to_owned(),
        mode: PermissionMode::WorkspaceWrite,
        session_id: "s-1".to_owned(),
        fork: None,
        usage: usage(0, Some(0.0)),
        backends: vec!["anthropic".to_owned(), "openai".to_owned()],
        models: vec!["claude-x".to_owned(), "claude-y".to_owned()],
        steering: false,
    }
}

fn usage(context_tokens: u64, cost_usd: Option<f64>) -> UsageReport {
    UsageReport {
        total: TokenUsage::default(),
        context_tokens,
        context_window: Some(200_000),
        cost_usd,
    }
}

/// A session is open; `said` are prompts and answers in turn, `history` what was typed in it.
fn opened(id: &str, said: &[&str], history: &[&str]) -> TuiEvent {
    let messages = said.iter().enumerate().map(|(at, text)| {
        let mut message = ConversationMessage::user(*text);
        if at % 2 == 1 {
            message.role = MessageRole::Assistant;
        }
        Arc::new(message)
    });
    let view = SessionView {
        id: id.to_owned(),
        path: format!("{id}.jsonl").into(),
        fork: None,
        messages: messages.collect(),
        prompt_history: history.iter().map(|text| (*text).to_owned()).collect(),
        warnings: Vec::new(),
        resumed: !said.is_empty(),
    };
    TuiEvent::SessionOpened { view }
}

fn entry(id: &str, title: &str) -> SessionEntry {
    SessionEntry {
        id: id.to_owned(),
        path: format!("{id}.jsonl").into(),
        title: title.to_owned(),
        updated_at_ms: 0,
        bytes: 1_000,
        message_count: 2,
        fork: None,
        model: None,
        current: false,
        locked: false,
    }
}

fn listed(entries: &[(&str, &str)]) -> TuiEvent {
    let sessions = entries.iter().map(|(id, title)| entry(id, title)).collect();
    TuiEvent::SessionsListed { sessions, now_ms: 3_600_000 }
}

/// Effects as a reader says them.
fn words(effects: &[Effect]) -> String {
    effects.iter().map(word).collect::<Vec<_>>().join("; ")
}

fn word(effect: &Effect) -> String {
    match effect {
        Effect::Send(command) => order(command),
        Effect::Cancel(_) => "cancel".to_owned(),
        Effect::Copy(text) => format!("copy {text}"),
        Effect::OpenEditor(text) => format!("edit {text}"),
        Effect::EditRequest(_, text) => format!("change {text}"),
        Effect::Suspend => "suspend".to_owned(),
        Effect::CaptureMouse(on) => format!("mouse {on}"),
        Effect::Worker(PaneOrder::Type(bytes)) => {
            format!("type {}", String::from_utf8_lossy(bytes).escape_debug())
        }
        Effect::Worker(order) => format!("{order:?}").to_lowercase(),
        Effect::Redraw => "redraw".to_owned(),
        Effect::Quit => "quit".to_owned(),
    }
}

fn order(command: &Command) -> String {
    match command {
        Command::Submit { input, .. } => format!("submit {input}"),
        Command::Steer { input } => format!("steer {input}"),
        Command::Retry { .. } => "retry".to_owned(),
        Command::Compact { .. } => "compact".to_owned(),
        Command::Clear => "clear".to_owned(),
        Command::ListSessions => "list sessions".to_owned(),
        Command::Fork { branch } => format!("fork {branch:?}"),
        Command::Open { reference } => format!("open {reference}"),
        Command::Export { path } => format!("export {path:?}"),
        Command::SetModel { model } => format!("model {model}"),
        Command::SetMode { mode } => format!("mode {mode}"),
        Command::SetBackend { name } => format!("backend {name:?}"),
        Command::Report { topic } => format!("report {topic:?}"),
        Command::StopUnasked => "stop unasked".to_owned(),
        Command::Shutdown => "shutdown".to_owned(),
    }
}
