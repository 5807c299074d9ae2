//! The interactive CLI on a terminal, without a worker around it: keys in, the screen out.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claw_tests::mock_api::PATIENCE;
use claw_tests::screen::Screen;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use tokio::sync::watch;

/// Columns and rows.
const SIZE: (u16, u16) = (120, 40);

/// Drop it to end the CLI.
pub struct Terminal {
    screen: Arc<Mutex<Screen>>,
    /// Counts what was read; its end is the end of the output.
    changed: watch::Receiver<usize>,
    writer: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    pub fn start(argv: &[OsString], environment: &[(OsString, OsString)], cwd: &Path) -> Self {
        let size = PtySize { rows: SIZE.1, cols: SIZE.0, pixel_width: 0, pixel_height: 0 };
        let pty = native_pty_system().openpty(size).expect("a pty");
        let mut command = CommandBuilder::from_argv(argv.to_vec());
        command.env_clear();
        for (name, value) in environment {
            command.env(name, value);
        }
        command.cwd(cwd);
        let child = pty.slave.spawn_command(command).expect("the CLI starts");
        drop(pty.slave);
        let mut reader = pty.master.try_clone_reader().expect("a reader");
        let writer = pty.master.take_writer().expect("a writer");
        let screen = Arc::new(Mutex::new(Screen::new(SIZE.0, SIZE.1)));
        let (change, changed) = watch::channel(0);
        let drawn = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(count) = reader.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                drawn.lock().unwrap_or_else(PoisonError::into_inner).feed(&buffer[..count]);
                change.send_modify(|read| *read += count);
            }
        });
        Self { screen, changed, writer, child, _master: pty.master }
    }

    pub fn text(&self) -> String {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Waits until the screen shows what is looked for, and gives what was found.
    pub async fn until<T>(&mut self, what: &str, look: impl Fn(&str) -> Option<T>) -> T {
        let found = async {
            loop {
                if let Some(found) = look(&self.text()) {
                    return Some(found);
                }
                self.changed.changed().await.ok()?;
            }
        };
        match tokio::time::timeout(PATIENCE, found).await {
            Ok(Some(found)) => found,
            Ok(None) => panic!("the CLI ended before {what}:\n{}", self.text()),
            Err(_) => panic!("no {what}:\n{}", self.text()),
        }
    }

    /// Waits until something more was drawn.
    pub async fn change(&mut self) {
        self.changed.changed().await.expect("the CLI lives");
    }

    pub async fn until_shows(&mut self, text: &str) {
        self.until(text, |screen| screen.contains(text).then_some(())).await;
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).and_then(|()| self.writer.flush()).expect("the CLI reads");
    }

    /// Pastes a prompt and sends it off.
    pub async fn submit(&mut self, prompt: &str) {
        self.write(format!("\x1b[200~{prompt}\x1b[201~").as_bytes());
        self.until_shows(prompt).await;
        self.write(b"\r");
    }

    /// Waits for its end and gives the exit status.
    pub async fn ended(&mut self) -> u32 {
        let whole = async { while self.changed.changed().await.is_ok() {} };
        tokio::time::timeout(PATIENCE, whole).await.expect("the CLI ends");
        self.child.wait().expect("a status").exit_code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(process) =
            self.child.process_id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()))
        {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
        // It answers within a second; what does not answer is killed.
        for _ in 0..100 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The input box: a mark between two rules.
pub fn at_input_box(screen: &str) -> Option<()> {
    let lines: Vec<&str> = screen.lines().collect();
    let boxed = |three: &[&str]| {
        three[0].starts_with("──") && three[1].starts_with('❯') && three[2].starts_with("──")
    };
    lines.windows(3).any(boxed).then_some(())
}
