//! The terminal: raw mode, the bytes that come, the modes that are set and reset.

use std::io::{Read, Write};
use std::path::PathBuf;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::version::Version;

pub struct Terminal {
    before: Termios,
    version: Version,
}

impl Terminal {
    /// Raw mode and the modes of this version; the error is what the CLI says without a terminal.
    pub fn open(version: Version) -> Result<Self, String> {
        let before = tcgetattr(std::io::stdin()).map_err(|_| {
            "Error: Input must be provided either through stdin or as a prompt argument when \
             using --print"
                .to_owned()
        })?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).map_err(|e| e.to_string())?;
        let modes = match version {
            Version::V332 => {
                "\x1b[?1049h\x1b[?1004h\x1b[?2004h\x1b[?2031h\x1b[?1000h\x1b[?1002h\x1b[?1003h\
                 \x1b[?1006h\x1b]11;?\x07\x1b[c\x1b[>0q\x1b[?u"
            }
            Version::V197 => "\x1b[?1004h\x1b[?2004h\x1b[?2031h\x1b[>0q\x1b[c",
        };
        let terminal = Self { before, version };
        terminal.write(modes);
        Ok(terminal)
    }

    pub fn write(&self, text: &str) {
        let mut out = std::io::stdout();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        match tcgetwinsize(std::io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (usize::from(size.ws_col), usize::from(size.ws_row))
            }
            _ => (80, 24),
        }
    }

    pub fn close(&self) {
        let modes = match self.version {
            Version::V332 => {
                "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?2031l\x1b[?2004l\x1b[?1004l\
                 \x1b[?1049l"
            }
            Version::V197 => "\x1b[?2031l\x1b[?2004l\x1b[?1004l",
        };
        self.write(modes);
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Reads input on a thread of its own; the channel ends with the input. `log` gets every read.
pub fn read_input(log: Option<PathBuf>) -> mpsc::UnboundedReceiver<Vec<u8>> {
    let (bytes, received) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut log = log
            .and_then(|path| std::fs::OpenOptions::new().create(true).append(true).open(path).ok());
        let mut buffer = [0_u8; 16 * 1024];
        let mut input = std::io::stdin().lock();
        while let Ok(count @ 1..) = input.read(&mut buffer) {
            if let Some(log) = &mut log {
                let now = jiff::Timestamp::now().as_millisecond();
                let hex: String =
                    buffer[..count].iter().map(|byte| format!("{byte:02x}")).collect();
                let _ = writeln!(log, "{now} {hex}");
            }
            if bytes.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    received
}
