//! Putting text on the clipboard with a program, or into a file where nothing else works.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use claw_tui::terminal::clipboard::{Copied, CopyProgram};

/// How long a program may take.
const PROGRAM_BOUND: Duration = Duration::from_secs(3);

/// Copies on a thread of its own, so that a program that hangs holds up nothing, and tells in words
/// what came of it. `asked`: the terminal was asked already.
pub fn copy_in_background(
    text: String,
    asked: bool,
    programs: Vec<CopyProgram>,
    tell: impl FnOnce(String) + Send + 'static,
) {
    let spawned = thread::Builder::new().name("clipboard".to_owned()).spawn(move || {
        tell(copy(&text, asked, &programs).message());
    });
    if let Err(error) = spawned {
        tracing::warn!(%error, "no thread for the clipboard");
    }
}

fn copy(text: &str, asked: bool, programs: &[CopyProgram]) -> Copied {
    for program in programs {
        if by_program(text, program) {
            return Copied::ByProgram(program.name);
        }
    }
    if asked {
        return Copied::AskedTerminal;
    }
    match in_file(text) {
        Ok(path) => Copied::InFile(path),
        Err(error) => Copied::Failed(error.to_string()),
    }
}

/// True when the program took the text and said so in time.
fn by_program(text: &str, program: &CopyProgram) -> bool {
    let child = Command::new(program.name)
        .args(program.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return false };
    let Some(mut stdin) = child.stdin.take() else { return false };
    let text = text.to_owned();
    let (done, answer) = mpsc::channel();
    let waiting = thread::Builder::new().name("clipboard-wait".to_owned()).spawn(move || {
        let written = stdin.write_all(text.as_bytes()).is_ok();
        drop(stdin);
        // A program without a display may hang; then nobody reads this any more.
        let _unheard = done.send(written && child.wait().is_ok_and(|status| status.success()));
    });
    waiting.is_ok() && answer.recv_timeout(PROGRAM_BOUND).unwrap_or(false)
}

fn in_file(text: &str) -> std::io::Result<std::path::PathBuf> {
    let mut file = tempfile::Builder::new().prefix("claw-copy-").suffix(".md").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.keep().map(|(_, path)| path).map_err(|error| error.error)
}
