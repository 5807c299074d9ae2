//! The worker guard: a tiny process that outlives a crash of this one and ends what it left.
//!
//! When our process is killed hard, the hang-up of their terminals reaches the CLIs, but not the
//! commands that they run in sessions of their own. The guard sleeps in a read on a pipe whose other
//! end we hold. When the pipe ends without our word that all is in order, it ends everything that
//! carries our marker and removes our private folders. It lives in a session of its own and obeys no
//! signal that a terminal or a shell sends; until the pipe ends it does nothing at all.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::process::{Marker, Patience, collect, end_tree_now};
use crate::timings::{SECOND_LOOK, Timings};

/// The hidden subcommand. Its arguments: the marker, and the beginning that our private folders have
/// in common (see [`Guard::spawn`]).
pub const SUBCOMMAND: &str = "__worker-guard";

/// Said when no worker is left and no folder.
const ALL_IN_ORDER: u8 = b'c';

/// The guard of our process. Dropping it makes it act; [`release`](Self::release) sends it home.
pub struct Guard {
    process: Child,
    pipe: ChildStdin,
}

impl Guard {
    /// Starts it. `command` is our own program with [`SUBCOMMAND`]. `private` is a folder to remove,
    /// or the beginning of the names of several: for `/run/claw/12-34` also `/run/claw/12-34-abc`
    /// (see [`own_folders`](crate::private_dir::own_folders)).
    pub fn spawn(command: &[OsString], marker: &Marker, private: &Path) -> io::Result<Self> {
        let [program, arguments @ ..] = command else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program for the guard"));
        };
        let mut process = Command::new(program)
            .args(arguments)
            .arg(marker.as_str())
            .arg(private)
            // Also keeps our own marker out of it, should we be a worker's tool ourselves.
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        match process.stdin.take() {
            Some(pipe) => Ok(Self { process, pipe }),
            None => Err(io::Error::other("the guard has no pipe")),
        }
    }

    /// Says that all is in order: it goes, and does nothing.
    pub fn release(mut self) {
        // One that is gone needs no word.
        let _ = self.pipe.write_all(&[ALL_IN_ORDER]);
        drop(self.pipe);
        // Returns at once: there is nothing that it would wait for.
        let _ = self.process.wait();
    }
}

/// Is the guard, when the arguments (without the program's name) say so.
pub fn stand(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != SUBCOMMAND {
        return None;
    }
    let (Some(marker), Some(private)) = (arguments.next(), arguments.next()) else {
        return Some(ExitCode::FAILURE);
    };
    let Some(marker) = marker.to_str().filter(|marker| !marker.is_empty()).map(Marker::from) else {
        return Some(ExitCode::FAILURE);
    };
    withdraw();
    if last_word(&mut io::stdin()) != Some(ALL_IN_ORDER) {
        clean_up(&marker, &PathBuf::from(private));
    }
    Some(ExitCode::SUCCESS)
}

/// Out of reach of terminals, and deaf to signals that are not meant for it alone.
fn withdraw() {
    // Fails only when it is the leader of a group already; then it is out of reach as well.
    let _ = rustix::process::setsid();
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        // A handler that only notes it; nobody reads the note.
        let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
}

/// Waits for the end of the pipe and returns the last thing that was said.
fn last_word(pipe: &mut impl Read) -> Option<u8> {
    let mut last = None;
    let mut words = [0_u8; 16];
    loop {
        match pipe.read(&mut words) {
            Ok(0) => return last,
            Ok(count) => last = Some(words[count - 1]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return last,
        }
    }
}

fn clean_up(marker: &Marker, private: &Path) {
    let patience = Patience::from(&Timings::default());
    if collect(None, marker).is_empty() {
        std::thread::sleep(SECOND_LOOK);
    }
    end_tree_now(None, marker, patience);
    remove_private(private);
}

/// Removes the folder, and those whose names go on from its name with a hyphen.
fn remove_private(private: &Path) {
    let (Some(parent), Some(name)) = (private.parent(), private.file_name()) else { return };
    if !private.is_absolute() {
        return;
    }
    let Ok(entries) = parent.read_dir() else { return };
    for entry in entries.flatten() {
        if is_ours(&entry.file_name(), name) {
            // Does not follow links; what cannot be removed is removed by the next of our processes.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_ours(found: &OsStr, name: &OsStr) -> bool {
    let rest = found.as_bytes().strip_prefix(name.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"-"))
}

#[cfg(test)]
mod tests;
