//! The loop: waits on the inbox until the next deadline, hands what came to the application,
//! performs the effects that it orders, and draws when the frame is due.
//!
//! The only place that reads the clock. Refuses to know what anything means.

use std::io;
use std::time::Instant;

use claw_runtime::TuiEvent;
use claw_runtime::driver::Command;
use crossterm::event::Event;

use crate::app::{App, Effect};
use crate::frame::{FRAME, FrameClock, Urgency};
use crate::inbox::{Inbox, InboxReceiver, Signal};
use crate::pane::PaneOrder;
use crate::terminal::Session;

/// What only the program around the front-end can do: processes, files, the runtime's thread.
/// Except for [`Outside::edit`], nothing here may take long.
pub trait Outside {
    /// The first frame is on the screen: slow things may begin, and input is wanted.
    fn first_frame(&mut self, session: &mut Session);
    /// Hands an order to the runtime.
    fn send(&mut self, command: Command);
    /// Copies with a program, or into a file when the terminal could not be `asked`. What came of it
    /// arrives as a notice in the inbox.
    fn copy(&mut self, text: String, asked: bool);
    /// Looks at the worker's own screen, or types into it. What it shows arrives in the inbox.
    fn worker(&mut self, order: PaneOrder);
    /// Opens the text in the person's editor and returns what was saved, or why not.
    fn edit(&mut self, text: &str) -> Result<String, String>;
}

/// Why the loop ended.
#[derive(Debug)]
pub enum Ended {
    /// The person left.
    Quit,
    /// The process was told to end.
    Signal,
    /// The terminal is gone.
    TerminalGone(io::Error),
}

/// Runs the application until it ends. The session stays open for its farewell.
pub fn run(
    app: &mut App,
    inbox: &InboxReceiver,
    session: &mut Session,
    outside: &mut impl Outside,
) -> Ended {
    match turn_events_into_frames(app, inbox, session, outside) {
        Ok(ended) => ended,
        Err(error) => {
            // Nobody can see anything any more, but the turn still has to be told.
            for effect in app.update(Instant::now(), Inbox::Signal(Signal::End)) {
                match effect {
                    Effect::Send(command) => outside.send(command),
                    Effect::Cancel(turn) => turn.cancel(),
                    _ => {}
                }
            }
            Ended::TerminalGone(error)
        }
    }
}

fn turn_events_into_frames(
    app: &mut App,
    inbox: &InboxReceiver,
    session: &mut Session,
    outside: &mut impl Outside,
) -> io::Result<Ended> {
    let mut clock = FrameClock::default();
    draw(app, session, &mut clock)?;
    outside.first_frame(session);
    loop {
        let now = Instant::now();
        // Asked before the wait: afterwards a clock that counts seconds speaks of the next one.
        let due = app.next_deadline(now);
        let deadline = clock.deadline().into_iter().chain(due).min();
        let mut next = match deadline {
            Some(deadline) if clock.deadline().is_some() => inbox.recv_gathered(deadline),
            _ => inbox.recv_deadline(deadline),
        };
        let now = Instant::now();
        // Everything that waits is taken before a frame is drawn for it, but a source that never
        // pauses must not keep the screen from being drawn.
        while let Some(event) = next {
            let ending = matches!(event, Inbox::Signal(Signal::End));
            clock.dirty(now, urgency(&event));
            prepare(session, &event)?;
            for effect in app.update(now, event) {
                if matches!(effect, Effect::Quit) {
                    return Ok(if ending { Ended::Signal } else { Ended::Quit });
                }
                perform(effect, app, session, outside)?;
            }
            if ending {
                return Ok(Ended::Signal);
            }
            next = if now.elapsed() < FRAME { inbox.try_recv() } else { None };
        }
        if due.is_some_and(|due| due <= now) {
            app.tick(now);
            clock.dirty(now, Urgency::Stream);
        }
        if clock.is_due(Instant::now()) {
            draw(app, session, &mut clock)?;
        }
    }
}

fn draw(app: &mut App, session: &mut Session, clock: &mut FrameClock) -> io::Result<()> {
    let now = Instant::now();
    session.draw(|frame| app.draw(now, frame))?;
    clock.drawn(now);
    Ok(())
}

fn urgency(event: &Inbox) -> Urgency {
    match event {
        Inbox::Terminal(Event::Key(_) | Event::Mouse(_) | Event::Paste(_)) => Urgency::Input,
        _ => Urgency::Stream,
    }
}

/// What the screen itself has to know about an event.
fn prepare(session: &mut Session, event: &Inbox) -> io::Result<()> {
    match *event {
        Inbox::Terminal(Event::Resize(width, height)) => session.resize(width, height),
        Inbox::Signal(Signal::Continued) => session.reassert(),
        _ => Ok(()),
    }
}

fn perform(
    effect: Effect,
    app: &mut App,
    session: &mut Session,
    outside: &mut impl Outside,
) -> io::Result<()> {
    match effect {
        Effect::Send(command) => outside.send(command),
        Effect::Cancel(turn) => turn.cancel(),
        Effect::Redraw => session.repaint()?,
        Effect::Copy(text) => {
            let asked = session.copy(&text)?;
            outside.copy(text, asked);
        }
        Effect::OpenEditor(text) => {
            let result = session.lend(|| outside.edit(&text))?;
            app.editor_closed(Instant::now(), result);
        }
        Effect::EditRequest(id, text) => {
            let result = session.lend(|| outside.edit(&text))?;
            app.request_edited(Instant::now(), id, result);
        }
        Effect::Suspend => {
            if !session.suspend()? {
                let words = "cannot suspend: no shell is waiting that could continue this program";
                app.update(Instant::now(), Inbox::Runtime(TuiEvent::warning(words)));
            }
        }
        Effect::CaptureMouse(on) => session.capture_mouse(on)?,
        Effect::Worker(order) => outside.worker(order),
        Effect::Quit => {}
    }
    Ok(())
}
