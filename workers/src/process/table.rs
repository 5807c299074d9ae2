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
    use super::{HashSet, MARKER_VARIABLE, Marker, Pid, Row};
    use std::fs;

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
        let prefix = format!("{MARKER_VARIABLE}=");
        let carries = |pid: Pid| {
            // Not readable for processes of others, which are not ours.
            let environ = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
            environ.is_ok_and(|environ| {
                let mut values = environ
                    .split(|byte| *byte == 0)
                    .filter_map(|entry| entry.strip_prefix(prefix.as_bytes()));
                values.any(|value| marker.covers(value))
            })
        };
        rows.iter()
            .filter(|row| row.lives)
            .map(|row| row.id.pid)
            .filter(|pid| carries(*pid))
            .collect()
    }
}

/// `/proc/<pid>/stat`.
#[cfg(target_os = "linux")]
pub(super) fn read_stat(pid: Pid, stat: &[u8]) -> Option<Row> {
    // The name may hold anything, also brackets and spaces; what follows it may not.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields: Vec<&str> =
        std::str::from_utf8(&stat[end + 1..]).ok()?.split_whitespace().collect();
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
