//! The table of processes as the system shows it. It reads; it judges nothing.

use std::collections::HashSet;

use rustix::process::Pid;

use super::{MARKER_VARIABLE, Marker, ProcessId};

/// One process.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub id: ProcessId,
    pub parent: Option<Pid>,
    /// None where the system does not tell.
    pub session: Option<Pid>,
    /// False for one that has ended and was not reaped.
    pub lives: bool,
}

#[cfg(target_os = "linux")]
mod system {
    use super::{EnvironmentSize, HashSet, MARKER_VARIABLE, Marker, Pid, Row};
    use crate::timings::{EXEC_LOOKS, EXEC_PAUSE};
    use std::fs;
    use std::sync::LazyLock;

    pub fn all() -> Vec<Row> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| row(Pid::from_raw(pid)?)).collect()
    }

    pub fn row(pid: Pid) -> Option<Row> {
        let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        super::read_stat(pid, &stat)
    }

    pub fn marked(rows: &[Row], marker: &Marker) -> HashSet<Pid> {
        let mut open: Vec<Pid> =
            rows.iter().filter(|row| row.lives).map(|row| row.id.pid).collect();
        let mut carriers = HashSet::new();
        for look in 0..EXEC_LOOKS {
            if look > 0 {
                std::thread::sleep(EXEC_PAUSE);
            }
            open.retain(|pid| match carries(*pid, marker) {
                Some(true) => !carriers.insert(*pid),
                Some(false) => false,
                None => true,
            });
            if open.is_empty() {
                break;
            }
        }
        carriers
    }

    /// None when it cannot be told now: a process that is just becoming another program has lost its
    /// old environment, wholly or in part, before the new one can be read.
    fn carries(pid: Pid, marker: &Marker) -> Option<bool> {
        let folder = format!("/proc/{}", pid.as_raw_nonzero());
        // Not readable for processes of others, which are not ours.
        let Ok(environment) = fs::read(format!("{folder}/environ")) else { return Some(false) };
        let mut entries = environment.split(|byte| *byte == 0);
        let found = entries.any(|entry| {
            let value = entry.strip_prefix(MARKER_VARIABLE.as_bytes());
            value
                .and_then(|value| value.strip_prefix(b"="))
                .is_some_and(|value| marker.covers(value))
        });
        // Read afterwards: what is whole by then was whole when it was read.
        let Ok(stat) = fs::read(format!("{folder}/stat")) else { return Some(found) };
        let whole = match super::environment_size(&stat) {
            EnvironmentSize::Bytes(size) => size == environment.len(),
            EnvironmentSize::NoneAtAll => true,
            EnvironmentSize::InExec => !*TELLS_SIZES,
        };
        (found || whole).then_some(found)
    }

    /// False where the system shows nothing of the memory of processes, so that each looks as if it
    /// were in the middle of an exec.
    static TELLS_SIZES: LazyLock<bool> = LazyLock::new(|| {
        let stat = fs::read("/proc/self/stat").unwrap_or_default();
        matches!(super::environment_size(&stat), EnvironmentSize::Bytes(_))
    });
}

#[cfg(target_os = "linux")]
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EnvironmentSize {
    Bytes(usize),
    /// A thread of the kernel, or a process that has ended.
    NoneAtAll,
    /// It is becoming another program.
    InExec,
}

#[cfg(target_os = "linux")]
pub(super) fn environment_size(stat: &[u8]) -> EnvironmentSize {
    const KERNEL_THREAD: u64 = 0x0020_0000;
    let fields = fields(stat).unwrap_or_default();
    let number = |at: usize| fields.get(at).map_or(0, |field| field.parse::<u64>().unwrap_or(0));
    let (flags, memory, code) = (number(6), number(20), number(23));
    if flags & KERNEL_THREAD != 0 || memory == 0 {
        return EnvironmentSize::NoneAtAll;
    }
    // The start of the code is the last that is made known.
    let size = number(48).checked_sub(number(47)).filter(|_| code != 0);
    match size.and_then(|size| usize::try_from(size).ok()) {
        Some(size) => EnvironmentSize::Bytes(size),
        None => EnvironmentSize::InExec,
    }
}

/// The fields after the name, which may hold anything, also brackets and spaces.
#[cfg(target_os = "linux")]
fn fields(stat: &[u8]) -> Option<Vec<&str>> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    Some(std::str::from_utf8(&stat[end + 1..]).ok()?.split_whitespace().collect())
}

/// `/proc/<pid>/stat`.
#[cfg(target_os = "linux")]
pub(super) fn read_stat(pid: Pid, stat: &[u8]) -> Option<Row> {
    let fields = fields(stat)?;
    let number = |at: usize| fields.get(at)?.parse::<i64>().ok();
    let process = |at: usize| Pid::from_raw(i32::try_from(number(at)?).ok()?);
    let ended = matches!(*fields.first()?, "Z" | "X" | "x");
    Some(Row {
        id: ProcessId { pid, started: number(19)?.unsigned_abs() },
        parent: process(1),
        session: process(3),
        // The first thread of a process may have ended before the others.
        lives: !ended || number(17)? > 1,
    })
}

/// By `ps`, which tells no sessions, and start times to the second.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::{HashSet, MARKER_VARIABLE, Marker, Pid, ProcessId, Row};
    use std::hash::{DefaultHasher, Hash, Hasher};
    use std::process::{Command, Stdio};

    fn ps(arguments: &[&str]) -> String {
        let told = Command::new("ps").args(arguments).stdin(Stdio::null()).output();
        told.map(|told| String::from_utf8_lossy(&told.stdout).into_owned()).unwrap_or_default()
    }

    const COLUMNS: &str = "pid=,ppid=,stat=,lstart=";

    pub fn all() -> Vec<Row> {
        ps(&["-axo", COLUMNS]).lines().filter_map(read).collect()
    }

    pub fn row(pid: Pid) -> Option<Row> {
        let pid = pid.as_raw_nonzero().to_string();
        ps(&["-o", COLUMNS, "-p", &pid]).lines().find_map(read)
    }

    fn read(line: &str) -> Option<Row> {
        let mut fields = line.split_whitespace();
        let pid = Pid::from_raw(fields.next()?.parse().ok()?)?;
        let parent = Pid::from_raw(fields.next()?.parse().ok()?);
        let lives = !fields.next()?.starts_with('Z');
        let mut started = DefaultHasher::new();
        fields.for_each(|field| field.hash(&mut started));
        let id = ProcessId { pid, started: started.finish() };
        Some(Row { id, parent, session: None, lives })
    }

    pub fn marked(_: &[Row], marker: &Marker) -> HashSet<Pid> {
        let prefix = format!("{MARKER_VARIABLE}=");
        let shown = ps(&["-axEww", "-o", "pid=,command="]);
        let carries = |line: &&str| {
            let mut values = line.split_whitespace().filter_map(|word| word.strip_prefix(&prefix));
            values.any(|value| marker.covers(value.as_bytes()))
        };
        let pid = |line: &str| Pid::from_raw(line.split_whitespace().next()?.parse().ok()?);
        shown.lines().filter(carries).filter_map(pid).collect()
    }
}

pub use system::{all, marked, row};
