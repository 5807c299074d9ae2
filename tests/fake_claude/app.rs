//! The terminal program: keys, dialogs and turns, joined in one loop.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::app_front::{AppEvent, AppFront};
use crate::app_keys::question_dialog;
use crate::argv::Options;
use crate::conversation::Conversation;
use crate::dialog::{Choice, Dialog};
use crate::front::{Answer, Question};
use crate::input_box::InputBox;
use crate::keys::Keys;
use crate::open::{self, Opening};
use crate::quirks::Quirks;
use crate::record::timestamp;
use crate::screen::Screen;
use crate::session::{Prompt, Session, Source};
use crate::terminal::{Terminal, read_input};
use crate::turn::Ended;
use crate::version::Version;

/// How the process ends.
#[derive(Debug)]
pub struct Exit {
    pub code: i32,
    /// Said on the terminal that is left.
    pub words: String,
    /// Of the SessionEnd hook; none when there was no session.
    pub reason: Option<&'static str>,
}

impl Exit {
    pub fn with(code: i32, words: &str) -> Self {
        Self { code, words: words.to_owned(), reason: None }
    }

    pub fn because(code: i32, reason: &'static str) -> Self {
        Self { code, words: String::new(), reason: Some(reason) }
    }
}

/// Something in front of the input box.
pub enum Overlay {
    Question(Dialog, Box<Question>, oneshot::Sender<Answer>),
    /// Esc or an entry closes it, and that is all.
    Plain(Dialog),
}

pub type Running = LocalBoxFuture<'static, (Conversation, Ended)>;

pub struct Signals {
    term: Signal,
    hup: Signal,
    int: Signal,
}

pub struct App {
    pub session: Rc<Session>,
    pub bypass_accepted: bool,
    pub terminal: Terminal,
    pub bytes: mpsc::UnboundedReceiver<Vec<u8>>,
    pub events: mpsc::UnboundedReceiver<AppEvent>,
    pub signals: Signals,
    /// The terminal has another size: everything is drawn again.
    pub resized: Signal,
    pub keys: Keys,
    pub input: InputBox,
    pub screen: Screen,
    pub dialog: Option<Overlay>,
    /// For hooks and records beside the turn.
    pub desk: Conversation,
    /// None while a turn has it.
    pub idle: Option<Conversation>,
    pub running: Option<Running>,
    pub cancel: CancellationToken,
    /// Commands that came during a turn.
    pub waiting_commands: Vec<String>,
    pub last_escape: Option<Instant>,
    pub last_exit_key: Option<Instant>,
    pub swallow: Cell<bool>,
    pub surprise_at: Option<tokio::time::Instant>,
    pub go_on_at: Option<tokio::time::Instant>,
}

/// Runs until the end; the exit status.
pub async fn run(version: Version, options: Options, quirks: Quirks) -> i32 {
    let (sender, events) = mpsc::unbounded_channel();
    let front = Rc::new(AppFront { events: sender });
    let made = open::session(version, options, quirks, front);
    let (session, opening, bypass_accepted) = match made {
        Ok(made) => made,
        Err(words) => {
            eprintln!("{words}");
            return 1;
        }
    };
    let terminal = match Terminal::open(version) {
        Ok(terminal) => terminal,
        Err(words) => {
            eprintln!("{words}");
            return 1;
        }
    };
    let never = session.quirks.has("not-reading") || session.quirks.has("stall-at-start");
    let bytes = if never {
        // The sender is kept for ever, so the channel never ends.
        let (keep, bytes) = mpsc::unbounded_channel();
        std::mem::forget(keep);
        bytes
    } else {
        read_input(session.quirks.path("log-input"))
    };
    let listen = |kind| signal(kind).expect("a handler for a signal");
    let thread = opening.conversation(&session);
    let mut app = App {
        bypass_accepted,
        terminal,
        bytes,
        events,
        signals: Signals {
            term: listen(SignalKind::terminate()),
            hup: listen(SignalKind::hangup()),
            int: listen(SignalKind::interrupt()),
        },
        resized: listen(SignalKind::window_change()),
        keys: Keys::default(),
        input: InputBox::new(version),
        screen: Screen::default(),
        dialog: None,
        desk: thread.view(),
        idle: Some(thread),
        running: None,
        cancel: CancellationToken::new(),
        waiting_commands: Vec::new(),
        last_escape: None,
        last_exit_key: None,
        swallow: Cell::new(session.quirks.has("swallow-first-cr")),
        surprise_at: None,
        go_on_at: None,
        session,
    };
    let exit = app.live(&opening).await;
    app.leave(exit).await
}

impl App {
    async fn live(&mut self, opening: &Opening) -> Exit {
        if self.session.quirks.has("stall-at-start") || self.session.quirks.has("never-ready") {
            return self.wait_for_end().await;
        }
        if let Err(exit) = self.pass_dialogs().await {
            return exit;
        }
        if let Some(wait) = self.session.quirks.millis("slow-ready") {
            tokio::time::sleep(wait).await;
        }
        if !self.session.version.is_332() {
            let session = Rc::clone(&self.session);
            tokio::task::spawn_local(async move { session.api.knock().await });
        }
        self.draw();
        self.desk.fire("SessionStart", opening.about(&self.session)).await;
        if let Some(text) = self.session.quirks.text("banner") {
            self.screen.say('●', text);
        }
        if self.session.quirks.has("unasked-before") {
            self.unasked();
        }
        if let Some(prompt) = self.session.options.prompt.clone() {
            self.start(vec![Prompt::new(prompt, Source::Typed)]);
        }
        loop {
            self.draw();
            if let Err(exit) = self.step().await {
                return exit;
            }
        }
    }

    /// Waits for one thing and does what follows from it.
    async fn step(&mut self) -> Result<(), Exit> {
        let idle = self.running.is_none() && self.dialog.is_none();
        let running = self.running.as_mut();
        let turn = async move {
            match running {
                Some(running) => running.await,
                None => std::future::pending().await,
            }
        };
        let (surprise, go_on) = (self.surprise_at, self.go_on_at);
        tokio::select! {
            biased;
            exit = ended(&mut self.signals, self.session.quirks.has("ignore-sigterm")) => Err(exit),
            bytes = self.bytes.recv() => match bytes {
                Some(bytes) => {
                    let keys = self.keys.feed(&bytes);
                    self.press_all(keys).await
                }
                None => Err(Exit::because(129, "other")),
            },
            Some(event) = self.events.recv() => {
                self.see(event);
                Ok(())
            }
            (thread, ended) = turn => {
                self.turn_over(thread, ended).await;
                for line in std::mem::take(&mut self.waiting_commands) {
                    self.command(&line).await?;
                }
                Ok(())
            }
            () = self.session.queued.notified(), if idle => {
                self.take_queue();
                Ok(())
            }
            _ = self.resized.recv() => Ok(()),
            () = tokio::time::sleep(Duration::from_millis(50)), if self.keys.is_waiting() => {
                let keys = self.keys.settle();
                self.press_all(keys).await
            }
            () = at(surprise) => {
                self.surprise_at = None;
                self.dialog = Some(Overlay::Plain(Dialog::surprise()));
                Ok(())
            }
            () = at(go_on) => {
                self.go_on_at = None;
                let text = "Continue from where you left off.".to_owned();
                self.session.enqueue(Prompt::new(text, Source::Notification));
                Ok(())
            }
        }
    }

    async fn wait_for_end(&mut self) -> Exit {
        loop {
            tokio::select! {
                exit = ended(&mut self.signals, self.session.quirks.has("ignore-sigterm")) => {
                    return Exit { reason: None, ..exit };
                }
                bytes = self.bytes.recv() => {
                    if bytes.is_none() {
                        return Exit::with(129, "");
                    }
                }
            }
        }
    }

    /// A dialog of the start.
    pub async fn choose(&mut self, mut dialog: Dialog) -> Result<Choice, Exit> {
        loop {
            self.screen.draw(&self.terminal, self.session.version, "", false, Some(&dialog));
            let keys = tokio::select! {
                exit = ended(&mut self.signals, false) => return Err(Exit { reason: None, ..exit }),
                bytes = self.bytes.recv() => match bytes {
                    Some(bytes) => self.keys.feed(&bytes),
                    None => return Err(Exit::with(129, "")),
                },
                () = tokio::time::sleep(Duration::from_millis(50)), if self.keys.is_waiting() => {
                    self.keys.settle()
                }
            };
            for key in keys {
                match dialog.press(&key) {
                    Choice::Open => {}
                    choice => return Ok(choice),
                }
            }
        }
    }

    fn draw(&self) {
        let dialog = self.dialog.as_ref().map(|open| match open {
            Overlay::Question(dialog, ..) | Overlay::Plain(dialog) => dialog,
        });
        let working = self.running.is_some();
        let version = self.session.version;
        self.screen.draw(&self.terminal, version, &self.input.text, working, dialog);
    }

    fn see(&mut self, event: AppEvent) {
        match event {
            AppEvent::Line(mark, text) => {
                self.screen.live.clear();
                self.screen.say(mark, &text);
            }
            AppEvent::Live(text) => self.screen.live = text,
            AppEvent::Ask(question, reply) => {
                let dialog = question_dialog(self.session.version, &question);
                self.dialog = Some(Overlay::Question(dialog, question, reply));
            }
            AppEvent::Asked => {
                let over = matches!(&self.dialog,
                    Some(Overlay::Question(_, _, reply)) if reply.is_closed());
                if over {
                    self.dialog = None;
                }
            }
        }
    }

    pub fn take_idle(&mut self) -> Option<Conversation> {
        let mut thread = self.idle.take()?;
        self.cancel = CancellationToken::new();
        thread.cancel = self.cancel.clone();
        self.go_on_at = None;
        Some(thread)
    }

    pub fn start(&mut self, prompts: Vec<Prompt>) {
        let first = self.session.state.borrow().turns == 0;
        let Some(mut thread) = self.take_idle() else { return };
        if first && !self.session.version.is_332() {
            let (view, text) = (self.desk.view(), prompts[0].text.clone());
            tokio::task::spawn_local(async move { view.ask_title(&text).await });
        }
        if first && self.session.quirks.has("unasked-during") {
            self.unasked();
        }
        self.running = Some(
            async move {
                let ended = thread.turn(prompts).await;
                (thread, ended)
            }
            .boxed_local(),
        );
    }

    async fn turn_over(&mut self, thread: Conversation, ended: Ended) {
        self.running = None;
        self.idle = Some(thread);
        self.screen.live.clear();
        let turns = self.session.state.borrow().turns;
        match ended {
            Ended::Withdrawn(text) => {
                // The prompt goes back into the box, in front of what is there.
                self.input.text.insert_str(0, &text);
            }
            Ended::Interrupted => {
                self.screen.say('⎿', "Interrupted · What should Claude do instead?");
            }
            Ended::Failed { limit: true, .. } if self.session.quirks.has("limit-continue") => {
                self.go_on_at = Some(tokio::time::Instant::now() + Duration::from_secs(1));
            }
            Ended::Failed { .. } | Ended::Completed => {}
        }
        if turns == 1 && self.session.quirks.has("clear-session") {
            self.clear().await;
        }
        if turns == 1 && self.session.quirks.has("unasked-between") {
            let session = Rc::clone(&self.session);
            let view = self.desk.view();
            tokio::task::spawn_local(async move {
                tokio::time::sleep(Duration::from_millis(300)).await;
                enqueue_notice(&view, &session);
            });
        }
        self.take_queue();
    }

    fn unasked(&self) {
        enqueue_notice(&self.desk, &self.session);
    }

    /// Everything that waits becomes one turn; what the CLI says itself has one of its own.
    fn take_queue(&mut self) {
        if self.running.is_some() {
            return;
        }
        let mut prompts: Vec<Prompt> = Vec::new();
        {
            let queue = &mut self.session.state.borrow_mut().queue;
            while let Some(next) = queue.front() {
                if prompts.first().is_some_and(|first| first.source != next.source) {
                    break;
                }
                prompts.extend(queue.pop_front());
            }
        }
        if prompts.is_empty() {
            return;
        }
        for _ in &prompts {
            self.desk.note(json!({"type": "queue-operation", "operation": "dequeue",
                "timestamp": timestamp()}));
        }
        self.start(prompts);
    }

    async fn leave(&mut self, exit: Exit) -> i32 {
        if exit.reason.is_some() {
            self.session.end_commands();
        }
        if let Some(reason) = exit.reason {
            self.desk.fire("SessionEnd", json!({"reason": reason})).await;
        }
        self.desk.transcript.flush();
        self.terminal.close();
        let used = self.session.state.borrow().turns > 0;
        if exit.code == 0 && used {
            self.terminal.write("\r\nResume this session with:\r\n");
            self.terminal.write(&format!("claude --resume {}\r\n", self.session.id()));
        }
        if !exit.words.is_empty() {
            self.terminal.write(&format!("{}\r\n", exit.words));
        }
        exit.code
    }
}

/// A background task has ended: words that nobody here asked for.
fn enqueue_notice(view: &Conversation, session: &Session) {
    let text = "<task-notification>\n<task-id>a0123456789abcdef</task-id>\n\
                <status>completed</status>\n<summary>Agent \"Unasked job\" finished</summary>\n\
                <result>Done.</result>\n</task-notification>";
    view.note(json!({"type": "queue-operation", "operation": "enqueue",
        "timestamp": timestamp(), "content": text}));
    session.enqueue(Prompt::new(text.to_owned(), Source::Notification));
}

/// A signal that ends the process.
async fn ended(signals: &mut Signals, ignore_term: bool) -> Exit {
    loop {
        tokio::select! {
            _ = signals.term.recv() => {
                if !ignore_term {
                    return Exit::because(143, "other");
                }
            }
            _ = signals.hup.recv() => return Exit::because(129, "other"),
            _ = signals.int.recv() => return Exit::because(0, "other"),
        }
    }
}

async fn at(when: Option<tokio::time::Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}
