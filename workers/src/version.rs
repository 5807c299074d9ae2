//! Where the CLI is, and which version it is. It is asked once for each program file.
//!
//! What it does not do: guess. A program that does not say that it is Claude Code is not driven.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::SystemTime;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use crate::config::WorkerConfig;
use crate::environment::{child_environment, variable};
use crate::error::WorkerError;

/// A version of the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Reads `2.1.332 (Claude Code)` on any line of what the program printed: a wrapper may have
    /// said something before.
    pub fn parse(printed: &str) -> Option<Self> {
        printed.lines().find_map(|line| {
            let number = line.trim().strip_suffix("(Claude Code)")?.trim_end();
            // What follows a hyphen or plus names a build of the same version.
            let mut parts = number.split(['-', '+']).next()?.split('.');
            let mut part = || parts.next()?.parse().ok();
            let version = Self::new(part()?, part()?, part()?);
            parts.next().is_none().then_some(version)
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The CLI that will be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cli {
    /// To be run as it stands; a bare name only behind a prefix, where we cannot look.
    pub program: OsString,
    pub version: Version,
}

/// The oldest version that was observed; its list of events holds for every later one.
pub const OBSERVED: Version = Version::new(2, 1, 197);

/// The newest version that was observed.
pub const NEWEST: Version = Version::new(2, 1, 332);

/// Events that we listen to and that versions before [`OBSERVED`] know too.
const OLD_EVENTS: &[&str] = &[
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "Notification",
    "Stop",
    "SubagentStop",
    "PreCompact",
];

/// Every event that we listen to.
const EVENTS: &[&str] = &[
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "Notification",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "MessageDisplay",
];

/// The events that may be registered with this version. A name that a version does not know opens a
/// dialog that blocks its start, so a version older than those that we have seen gets few.
pub fn known_hook_events(version: Version) -> &'static [&'static str] {
    if version >= OBSERVED { EVENTS } else { OLD_EVENTS }
}

/// Finds the program on the PATH of the configured environment.
pub fn find_program(config: &WorkerConfig) -> Result<PathBuf, WorkerError> {
    let missing =
        || WorkerError::ProgramMissing { program: config.program.to_string_lossy().into_owned() };
    let named = Path::new(&config.program);
    if named.components().count() > 1 || named.is_absolute() {
        let path = config.cwd.join(named);
        return if is_executable(&path) { Ok(path) } else { Err(missing()) };
    }
    if named.as_os_str().is_empty() {
        return Err(missing());
    }
    let folders = variable(&config.environment, "PATH").ok_or_else(missing)?;
    std::env::split_paths(folders)
        // An empty entry would mean the working folder: a project must not be able to name the CLI.
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(named))
        .find(|path| is_executable(path))
        .ok_or_else(missing)
}

fn is_executable(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return false };
    metadata.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Versions that were asked for, by program file and its time of change.
type Known = HashMap<(PathBuf, SystemTime), Version>;
static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// Finds the CLI and asks it for its version, at most for `timings.version`.
pub async fn find_cli(config: &WorkerConfig) -> Result<Cli, WorkerError> {
    if !config.prefix.is_empty() {
        let version = ask(config, &config.program).await?;
        return Ok(Cli { program: config.program.clone(), version });
    }
    let path = find_program(config)?;
    let key = path.metadata().and_then(|metadata| metadata.modified());
    let key = key.ok().map(|changed| (path.clone(), changed));
    let program = path.into_os_string();
    if let Some(version) = key.as_ref().and_then(|key| known().get(key).copied()) {
        return Ok(Cli { program, version });
    }
    let version = ask(config, &program).await?;
    if let Some(key) = key {
        known().insert(key, version);
    }
    Ok(Cli { program, version })
}

fn known() -> std::sync::MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// More than any version line and the complaints of a wrapper before it.
const MOST_PRINTED: u64 = 64 * 1024;

async fn ask(config: &WorkerConfig, program: &OsString) -> Result<Version, WorkerError> {
    let name = program.to_string_lossy().into_owned();
    let unknown = |said: String| WorkerError::VersionUnknown { program: name.clone(), said };
    let mut words = config.prefix.iter().chain([program]);
    let Some(first) = words.next() else { return Err(unknown(String::new())) };
    let mut command = Command::new(first);
    command.args(words).arg("--version").env_clear();
    command.envs(child_environment(config, "version", None)).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true).process_group(0);
    let mut child = command.spawn().map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => WorkerError::ProgramMissing { program: name.clone() },
        _ => WorkerError::Spawn { message: format!("{name}: {source}") },
    })?;
    // Declared after the child, so that it acts while the child is not reaped.
    let mut group = Group(child.id());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let run = async {
        let printed = tokio::join!(read_some(stdout), read_some(stderr));
        (printed, child.wait().await)
    };
    let Ok(((out, err), ended)) = tokio::time::timeout(config.timings.version, run).await else {
        let seconds = config.timings.version.as_secs();
        return Err(unknown(format!("nothing within {seconds} s")));
    };
    group.0 = None;
    ended.map_err(|source| WorkerError::Spawn { message: format!("{name}: {source}") })?;
    Version::parse(&out).ok_or_else(|| unknown(first_words(&out, &err)))
}

/// A process group that dies with this value: a wrapper's children go with it.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let group = self.0.and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        if let Some(group) = group {
            // It can only be gone already.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// What comes out of a pipe, up to the limit; what cannot be read was not said.
async fn read_some(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let _ = pipe.take(MOST_PRINTED).read_to_end(&mut bytes).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The first line that says something, shortened for a message.
fn first_words(out: &str, err: &str) -> String {
    let line = out.lines().chain(err.lines()).map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("nothing").chars().filter(|c| !c.is_control()).take(160).collect()
}

#[cfg(test)]
mod tests;
