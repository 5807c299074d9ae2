//! A pty and the command on it. The only file that names portable_pty.
//!
//! It opens, starts and resizes. Who reads, writes, waits and kills is decided elsewhere: from here
//! they get a descriptor that never blocks and a process that is not reaped behind their back.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use filedescriptor::FileDescriptor;
use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::fs::OFlags;
use rustix::process::{Pid, WaitId, WaitIdOptions};
use rustix::termios::Winsize;

use crate::child::Exit;
use crate::config::WindowSize;
use crate::error::WorkerError;

/// What runs on a pty.
#[derive(Debug, Clone)]
pub struct PtyCommand {
    /// The program (a name on the PATH of `environment`, or a path) and its arguments.
    pub argv: Vec<OsString>,
    /// Absolute.
    pub cwd: PathBuf,
    /// All of it: nothing is inherited. Only `SHELL` is added when it is missing.
    pub environment: Vec<(OsString, OsString)>,
}

impl PtyCommand {
    fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.environment.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_os_str())
    }

    /// Whether there is a program to start: portable-pty words that as free text only.
    fn finds_program(&self, program: &OsStr) -> bool {
        let path = Path::new(program);
        if path.is_absolute() || path.components().count() > 1 {
            return is_executable(&self.cwd.join(path));
        }
        let folders = self.variable("PATH").unwrap_or_default();
        std::env::split_paths(folders)
            .any(|folder| is_executable(&self.cwd.join(folder).join(path)))
    }
}

fn is_executable(path: &Path) -> bool {
    let executable = |rights: Permissions| rights.mode() & 0o111 != 0;
    path.metadata().is_ok_and(|found| found.is_file() && executable(found.permissions()))
}

/// The leader of a pty's session: a process that is reaped only by [`Leader::reap`], so that until
/// then its id belongs to nobody else.
pub(crate) struct Leader {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    pid: Pid,
}

/// Opens a pty of this size and starts the command on it: leader of a session and of a process group
/// of its own, with the pty as controlling terminal. The descriptor is the master; it is set to
/// never block.
pub(crate) fn spawn(
    command: &PtyCommand,
    size: WindowSize,
) -> Result<(OwnedFd, Leader), WorkerError> {
    let Some(program) = command.argv.first() else {
        return Err(failed("there is no program to start"));
    };
    // portable-pty would start it in the home folder instead.
    if !command.cwd.is_dir() {
        return Err(failed(format!("the folder {} is not there", command.cwd.display())));
    }
    if !command.finds_program(program) {
        let program = program.to_string_lossy().into_owned();
        return Err(WorkerError::ProgramMissing { program });
    }
    let pair = native_pty_system().openpty(pty_size(size)).map_err(failed)?;
    let master = descriptor(pair.master.as_ref())?;
    let mut builder = CommandBuilder::from_argv(command.argv.clone());
    builder.env_clear();
    for (name, value) in &command.environment {
        builder.env(name, value);
    }
    builder.cwd(&command.cwd);
    let child = pair.slave.spawn_command(builder).map_err(failed)?;
    let pid = child.process_id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let pid = pid.ok_or_else(|| failed("it has no process id"))?;
    Ok((master, Leader { child, pid }))
}

/// Tells the kernel, and by it the programs on the pty, how large the terminal is now.
pub(crate) fn resize(master: &OwnedFd, size: WindowSize) -> rustix::io::Result<()> {
    let size = pty_size(size);
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.cols,
        ws_xpixel: size.pixel_width,
        ws_ypixel: size.pixel_height,
    };
    rustix::termios::tcsetwinsize(master, size)
}

/// A size of zero makes full-screen programs draw nothing, or crash.
fn pty_size(size: WindowSize) -> PtySize {
    PtySize { rows: size.rows.max(1), cols: size.columns.max(1), pixel_width: 0, pixel_height: 0 }
}

/// A descriptor of our own for the master. portable-pty's writer is never taken: it types an end of
/// file when it is dropped.
fn descriptor(master: &dyn MasterPty) -> Result<OwnedFd, WorkerError> {
    let number = Number(master.as_raw_fd().ok_or_else(|| failed("its pty has no descriptor"))?);
    let copy = FileDescriptor::dup(&number).and_then(|copy| copy.as_file()).map_err(failed)?;
    let copy = OwnedFd::from(copy);
    let flags = rustix::fs::fcntl_getfl(&copy).map_err(failed)?;
    rustix::fs::fcntl_setfl(&copy, flags | OFlags::NONBLOCK).map_err(failed)?;
    Ok(copy)
}

/// A descriptor as portable-pty names it.
struct Number(RawFd);

impl AsRawFd for Number {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

fn failed(why: impl std::fmt::Display) -> WorkerError {
    WorkerError::Spawn { message: why.to_string() }
}

impl Leader {
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Reaps it if it has ended; never waits.
    pub fn reap(&mut self) {
        // An error means that there is nothing to reap.
        let _ = self.child.try_wait();
    }
}

/// How a child of ours ended, without reaping it; `None` while it lives.
pub(crate) fn peek_exit(pid: Pid) -> Option<Exit> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    match rustix::process::waitid(WaitId::Pid(pid), options) {
        Ok(status) => status
            .map(|status| Exit { code: status.exit_status(), signal: status.terminating_signal() }),
        Err(rustix::io::Errno::INTR) => None,
        // Not a child of ours any more: somebody reaped it.
        Err(_) => Some(Exit::default()),
    }
}
