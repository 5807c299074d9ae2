//! `claw tui`: the conversation on a full screen.

use std::io::{IsTerminal, stdin, stdout};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use claw_runtime::TuiEvent;
use claw_runtime::driver::Command;
use claw_runtime::permissions::Approvals;
use claw_runtime::settings::{self, ThemeChoice};
use claw_tui::app::{App, AppOptions, Effect};
use claw_tui::inbox::{self, Inbox, InboxSender};
use claw_tui::keymap::Keymap;
use claw_tui::link::RuntimeHandle;
use claw_tui::markdown::{CodeColours, Highlighter};
use claw_tui::pane::PaneOrder;
use claw_tui::run::{self, Ended, Outside};
use claw_tui::terminal::capabilities::Capabilities;
use claw_tui::terminal::{self, Session};
use claw_tui::theme::{ColourDepth, Theme};
use claw_workers::Host;
use ratatui::text::Line;
use tracing_appender::non_blocking::WorkerGuard;

use crate::args::{Common, Options};
use crate::way_back::WayBack;
use crate::wiring::{self, Failing, Workspace};
use crate::worker_pane::WorkerPane;
use crate::{clipboard, editor, guard, logging};

/// How long the runtime may take to end after the screen is gone: as long as a worker that has to be
/// killed. Without one it is done at once.
const SHUTDOWN: Duration = Duration::from_secs(6);

pub fn run(options: Options) -> Result<ExitCode> {
    let capabilities = Capabilities::from_environment(wiring::environment);
    capabilities.check_screen(stdin().is_terminal(), stdout().is_terminal())?;
    let workspace = Workspace::enter(&options.common)?;
    let theme = theme(&workspace, capabilities);
    let (sender, receiver) = inbox::channel();
    let way_back = WayBack {
        elsewhere: workspace.started_in.as_ref() != Some(&workspace.root),
        root: workspace.root.clone(),
    };
    let host = Arc::new(Host::default());
    let runtime = start_runtime(workspace, options.common, &sender, Arc::clone(&host))?;

    let (mut app, first) = App::new(AppOptions {
        theme,
        depth: capabilities.colours,
        keymap: Keymap::default(),
        colours: colours(&sender),
        first_prompt: options.prompt,
        mouse: true,
    });
    let tty = stdout().as_fd().try_clone_to_owned().context("cannot use the terminal")?;
    let mut session = Session::open(
        tty,
        terminal::Options {
            title: "claw".to_owned(),
            mouse: true,
            tmux: capabilities.tmux,
            colours: capabilities.colours != ColourDepth::None,
        },
    )
    .context("cannot use the terminal")?;
    terminal::panic::install(session.restorer(), sender.clone());
    session
        .watch_signals(sender.clone(), |code| std::process::exit(code))
        .context("cannot listen to signals")?;
    let mut outside = Program {
        runtime,
        sender: sender.clone(),
        capabilities,
        logs: None,
        worker: WorkerPane::new(host, sender),
    };
    for effect in first {
        if let Effect::Send(command) = effect {
            outside.send(command);
        }
    }
    let ended = run::run(&mut app, &receiver, &mut session, &mut outside);
    // Dropping the receiver frees a runtime that waits for the screen to take more.
    drop(receiver);
    let farewell = farewell(&mut app, session.width(), &way_back);
    // The person gets the terminal back first; the runtime may need its moment to end.
    let signal = session.close(&farewell);
    outside.runtime.shutdown(SHUTDOWN);
    Ok(match (ended, signal) {
        (_, Some(signal)) => ExitCode::from(128 + u8::try_from(signal).unwrap_or(0)),
        (Ended::TerminalGone(_), None) => ExitCode::from(129),
        _ => ExitCode::SUCCESS,
    })
}

fn start_runtime(
    workspace: Workspace,
    common: Common,
    sender: &InboxSender,
    host: Arc<Host>,
) -> Result<RuntimeHandle> {
    RuntimeHandle::spawn(Arc::new(sender.sink()), move |sink| {
        let prompter = Arc::new(Approvals::new(Arc::clone(&sink)));
        wiring::driver(workspace, &common, sink, prompter, Failing::GoesOn, host)
            .map_err(|error| format!("{error:#}"))
    })
    .context("cannot start the runtime's thread")
}

/// The theme that was set, or the one that fits what is known of the background.
fn theme(workspace: &Workspace, capabilities: Capabilities) -> Theme {
    let name = match workspace.settings.theme() {
        ThemeChoice::Auto if capabilities.light_background == Some(true) => ThemeChoice::Light,
        ThemeChoice::Auto => ThemeChoice::Dark,
        chosen => chosen,
    };
    Theme::named(name.as_str(), capabilities.colours).unwrap_or_else(Theme::plain)
}

/// Colours of code, found out beside the loop, which is woken when they are ready.
fn colours(sender: &InboxSender) -> Box<dyn CodeColours> {
    let sender = sender.clone();
    Box::new(Highlighter::new(Arc::new(move || sender.send(Inbox::Wake))))
}

/// The conversation for the normal screen, and how to come back to it.
fn farewell(app: &mut App, width: u16, way_back: &WayBack) -> Vec<Line<'static>> {
    let mut lines = app.farewell(Instant::now(), width);
    if let Some(session) = app.resumable_session() {
        lines.push(Line::from(""));
        lines.push(Line::from(way_back.words(session, app.session_file())));
    }
    lines
}

/// Processes, files and the runtime's thread, for the loop.
struct Program {
    runtime: RuntimeHandle,
    sender: InboxSender,
    capabilities: Capabilities,
    /// Flushes the log when dropped.
    logs: Option<WorkerGuard>,
    worker: WorkerPane,
}

impl Outside for Program {
    fn first_frame(&mut self, session: &mut Session) {
        if let Err(error) = session.listen(self.sender.clone()) {
            self.tell(TuiEvent::error(format!("keys cannot be read: {error}")));
        }
        // Without the guard only a killed process would leave the terminal in disorder.
        if let Err(error) = guard::spawn(&session.restorer()) {
            tracing::warn!(%error, "no terminal guard");
        }
        self.logs = logging::start(settings::config_home(&wiring::environment));
    }

    fn send(&mut self, command: Command) {
        #[cfg(debug_assertions)]
        panic_for_a_test(&command);
        self.runtime.send(command);
    }

    fn copy(&mut self, text: String, asked: bool) {
        let sender = self.sender.clone();
        let programs = terminal::clipboard::programs(&self.capabilities);
        clipboard::copy_in_background(text, asked, programs, move |message| {
            sender.send(Inbox::Runtime(TuiEvent::info(message)));
        });
    }

    fn worker(&mut self, order: PaneOrder) {
        self.worker.carry_out(order);
    }

    fn edit(&mut self, text: &str) -> Result<String, String> {
        editor::edit(text).map_err(|error| format!("{error:#}"))
    }
}

impl Program {
    fn tell(&self, event: TuiEvent) {
        self.sender.send(Inbox::Runtime(event));
    }
}

/// Panics on the UI thread for the prompt that `CLAW_TEST_PANIC` names; not in releases.
#[cfg(debug_assertions)]
fn panic_for_a_test(command: &Command) {
    if let Command::Submit { input, .. } = command {
        let wanted = wiring::environment("CLAW_TEST_PANIC");
        assert!(wanted.as_ref() != Some(input), "a panic for a test");
    }
}
