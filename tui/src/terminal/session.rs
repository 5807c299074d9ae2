//! The terminal in the hands of the loop: screen, input and signals together.
//!
//! Owns the order of things: modes before the first frame, input after it; input paused before
//! anybody else gets the terminal; everything said again when it comes back.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ratatui::Frame;
use ratatui::text::Line;

use super::input::InputThread;
use super::restore::Restorer;
use super::screen::Screen;
use super::signals::{SignalThread, Stopped};
use super::{clipboard, farewell, modes};
use crate::inbox::InboxSender;

/// How the terminal is to be used.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Window title.
    pub title: String,
    /// Capture the mouse: the wheel scrolls and clicks work, but the terminal's own selection
    /// needs its modifier key.
    pub mouse: bool,
    /// Inside tmux.
    pub tmux: bool,
    /// Colours in what is left behind on exit.
    pub colours: bool,
}

/// A taken terminal. Dropping it gives the terminal back.
pub struct Session {
    restorer: Arc<Restorer>,
    screen: Screen,
    options: Options,
    input: Option<InputThread>,
    signals: Option<SignalThread>,
}

impl Session {
    /// Takes the terminal behind this descriptor. Input is not read before [`Session::listen`].
    pub fn open(tty: OwnedFd, options: Options) -> io::Result<Self> {
        let restorer = Arc::new(Restorer::new(tty));
        let screen = Screen::new(restorer.size())?;
        let session = Self { restorer, screen, options, input: None, signals: None };
        session.take()?;
        Ok(session)
    }

    fn take(&self) -> io::Result<()> {
        self.restorer.take(&modes::enter(&self.options.title, self.options.mouse))
    }

    /// What gives the terminal back from elsewhere: the panic hook, the guard.
    pub fn restorer(&self) -> Arc<Restorer> {
        Arc::clone(&self.restorer)
    }

    /// Listens to signals. `exit` must end the process; it is called when the UI hangs after one.
    pub fn watch_signals(
        &mut self,
        inbox: InboxSender,
        exit: impl FnOnce(i32) + Send + 'static,
    ) -> io::Result<()> {
        self.signals = Some(SignalThread::start(inbox, self.restorer(), exit)?);
        Ok(())
    }

    /// Starts to read input. After the first frame: nothing may come before it.
    pub fn listen(&mut self, inbox: InboxSender) -> io::Result<()> {
        self.input = Some(InputThread::start(inbox)?);
        Ok(())
    }

    /// Draws a frame. Fails when the terminal is gone.
    pub fn draw(&mut self, paint: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        match self.screen.draw(paint)? {
            Some(bytes) => self.restorer.write(&bytes),
            None => Ok(()),
        }
    }

    /// The terminal has this size now; the next frame paints everything. Also when it is the size
    /// it had before: it may have had others in between, each of which cut or moved the picture.
    pub fn resize(&mut self, width: u16, height: u16) -> io::Result<()> {
        self.screen.reset((width, height))
    }

    /// Columns.
    pub fn width(&self) -> u16 {
        self.screen.size().0
    }

    /// Turns mouse capture on or off.
    pub fn capture_mouse(&mut self, on: bool) -> io::Result<()> {
        self.options.mouse = on;
        let sequence = if on { modes::MOUSE_ON } else { modes::MOUSE_OFF };
        self.restorer.write(sequence.as_bytes())
    }

    /// Asks the terminal to put this on its clipboard. False when it is too long for that.
    pub fn copy(&mut self, text: &str) -> io::Result<bool> {
        match clipboard::ask_terminal(text, self.options.tmux) {
            Some(bytes) => self.restorer.write(bytes.as_bytes()).map(|()| true),
            None => Ok(false),
        }
    }

    /// Gives the terminal to somebody else while `other` runs, then takes it again and paints
    /// everything, at the size it has by then.
    pub fn lend<T>(&mut self, other: impl FnOnce() -> T) -> io::Result<T> {
        self.release();
        self.set_lent(true);
        let result = other();
        self.set_lent(false);
        self.take_again()?;
        Ok(result)
    }

    /// Stops the job until the shell continues it. False where no shell waits: then nothing
    /// happened but a repaint. Fails when the job was continued only to be ended.
    pub fn suspend(&mut self) -> io::Result<bool> {
        self.release();
        let stopped = match &self.signals {
            Some(signals) => signals.stop(self.restorer.tty()),
            None => Stopped::NoShell,
        };
        if stopped == Stopped::Ending {
            return Err(io::Error::other("the stopped program was told to end"));
        }
        self.take_again()?;
        Ok(stopped == Stopped::Continued)
    }

    fn release(&self) {
        if let Some(input) = &self.input {
            input.pause();
        }
        self.restorer.give_back();
    }

    fn take_again(&mut self) -> io::Result<()> {
        self.take()?;
        self.screen.reset(self.restorer.size())?;
        if let Some(input) = &self.input {
            input.resume();
        }
        Ok(())
    }

    fn set_lent(&self, lent: bool) {
        if let Some(signals) = &self.signals {
            signals.set_lent(lent);
        }
    }

    /// Says everything again after the process was stopped and continued by somebody else.
    pub fn reassert(&mut self) -> io::Result<()> {
        self.restorer.retake_line()?;
        self.restorer.write(modes::reassert(self.options.mouse).as_bytes())?;
        self.screen.reset(self.restorer.size())
    }

    /// The next frame paints everything, at the size the terminal has.
    pub fn repaint(&mut self) -> io::Result<()> {
        self.screen.reset(self.restorer.size())
    }

    /// Gives the terminal back and leaves these lines on the normal screen. The signal that ended
    /// the program comes back, if one did.
    pub fn close(mut self, lines: &[Line<'_>]) -> Option<i32> {
        let ended_by = self.signals.as_ref().and_then(SignalThread::ended_by);
        if let Some(input) = self.input.take() {
            input.pause();
        }
        if self.restorer.give_back() {
            let text = farewell::encode(lines, self.options.colours);
            // A terminal that is gone has no scrollback to leave anything in.
            let _ = self.restorer.write(text.as_bytes());
        }
        ended_by
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.restorer.give_back();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Runs on a pipe in place of a terminal and returns everything that was written.
    fn written(story: impl FnOnce(Session)) -> String {
        let (mut reader, writer) = io::pipe().unwrap();
        let options = Options { title: "claw".into(), mouse: true, ..Options::default() };
        story(Session::open(writer.into(), options).unwrap());
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_farewell_stands_on_the_main_screen() {
        let out = written(|session| {
            assert_eq!(session.close(&[Line::from("bye")]), None);
        });
        assert!(out.ends_with(&format!("{}\rbye\r\n", modes::LEAVE)), "{out:?}");
    }

    #[test]
    fn a_dropped_session_gives_the_terminal_back() {
        assert!(written(drop).ends_with(modes::LEAVE));
    }

    #[test]
    fn lending_says_all_modes_again_and_paints_everything() {
        let out = written(|mut session| {
            session.draw(|frame| frame.render_widget("hello", frame.area())).unwrap();
            assert_eq!(session.lend(|| 7).unwrap(), 7);
            session.draw(|frame| frame.render_widget("hello", frame.area())).unwrap();
        });
        assert_eq!(out.matches(&modes::enter("claw", true)).count(), 2);
        assert_eq!(out.matches("hello").count(), 2);
        assert_eq!(out.matches(modes::LEAVE).count(), 2);
    }

    #[test]
    fn a_size_that_came_back_is_painted_again() {
        let out = written(|mut session| {
            let (width, height) = (session.width(), 24);
            session.draw(|frame| frame.render_widget("hello", frame.area())).unwrap();
            session.resize(width, height).unwrap();
            session.draw(|frame| frame.render_widget("hello", frame.area())).unwrap();
        });
        assert_eq!(out.matches("hello").count(), 2);
    }

    #[test]
    fn a_mouse_that_was_released_stays_released_when_the_terminal_comes_back() {
        let out = written(|mut session| {
            session.capture_mouse(false).unwrap();
            session.lend(|| ()).unwrap();
        });
        assert_eq!(out.matches(modes::MOUSE_ON).count(), 1);
    }

    #[test]
    fn without_a_shell_to_continue_it_nothing_is_stopped() {
        let out = written(|mut session| assert!(!session.suspend().unwrap()));
        assert!(out.contains(modes::LEAVE));
    }
}
