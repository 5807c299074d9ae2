//! The processes of one command: starting them apart from the terminal, finding all of them, ending
//! all of them.
//!
//! A command gets a session of its own where `setsid` is installed (so that nothing in it can ask
//! for a password on the terminal of the person), else a process group of its own. Members that
//! left the group are found by descent and by a mark in their environment, both through /proc;
//! where there is no /proc the group is all that is known.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};

/// Environment variable that marks what a command started.
const MARK: &str = "CLAW_TOOL_CALL";
/// Time between the polite signal and the one that cannot be refused.
const GRACE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(20);
/// A process that keeps making children is chased this often.
const KILL_ROUNDS: usize = 5;

/// Everything that one command started. Dropping it before [`ProcessTree::disarm`] kills it all.
#[derive(Debug)]
pub(super) struct ProcessTree {
    leader: Option<Pid>,
    mark: String,
    armed: bool,
}

/// Starts `bash -c command` in the folder; output goes where `output` says.
pub(super) fn spawn(
    command: &str,
    dir: &Path,
    output: (Stdio, Stdio),
) -> std::io::Result<(Child, ProcessTree)> {
    let mark = uuid::Uuid::new_v4().simple().to_string();
    let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "bash" };
    let setsid =
        ["/usr/bin/setsid", "/bin/setsid"].into_iter().find(|path| Path::new(path).exists());
    let mut process = if let Some(setsid) = setsid {
        // Not in a group of its own: only then does setsid keep the process id.
        let mut process = Command::new(setsid);
        process.arg(shell);
        process
    } else {
        let mut process = Command::new(shell);
        process.process_group(0);
        process
    };
    let child = process
        .arg("-c")
        .arg(command)
        .current_dir(dir)
        .env(MARK, &mark)
        // Nobody can type into an editor here; a commit without a message then says so at once.
        .env("GIT_EDITOR", "true")
        .stdin(Stdio::null())
        .stdout(output.0)
        .stderr(output.1)
        .spawn()?;
    let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    Ok((child, ProcessTree { leader, mark, armed: true }))
}

impl ProcessTree {
    /// The process ended by itself, or someone else looks after it: leave what it started alone.
    pub fn disarm(&mut self) {
        self.armed = false;
    }

    /// Ends everything: asks, waits a little, kills. Reaps the leader.
    pub async fn end(mut self, mut child: Child) {
        let mut known = self.signal(Signal::TERM, HashSet::new());
        let deadline = tokio::time::Instant::now() + GRACE;
        while tokio::time::Instant::now() < deadline {
            let _ = child.try_wait();
            if !known.iter().any(Process::lives) {
                break;
            }
            tokio::time::sleep(POLL).await;
        }
        for _ in 0..KILL_ROUNDS {
            known = self.signal(Signal::KILL, known);
            if known.is_empty() {
                break;
            }
            tokio::time::sleep(POLL).await;
        }
        self.disarm();
        let _ = tokio::time::timeout(GRACE, child.wait()).await;
    }

    /// Kills everything now, without asking and without waiting.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL, HashSet::new());
        self.disarm();
    }

    /// Sends the signal to all members that are alive, and to those of `known`. Returns them.
    fn signal(&self, signal: Signal, known: HashSet<Process>) -> HashSet<Process> {
        // Collected first: once the leader is gone, its children can no longer be told.
        let mut members = self.members();
        members.extend(known.into_iter().filter(Process::lives));
        if let Some(leader) = self.leader.filter(|leader| leads(*leader, &members)) {
            let _ = kill_process_group(leader, signal);
        }
        for member in &members {
            if let Some(pid) = Pid::from_raw(member.pid) {
                let _ = kill_process(pid, signal);
            }
        }
        members
    }

    /// The living members: marked ones, and descendants of the leader and of marked ones.
    fn members(&self) -> HashSet<Process> {
        let all = Process::all();
        let leader = self.leader.map(|pid| pid.as_raw_nonzero().get());
        let wanted = format!("{MARK}={}", self.mark);
        let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
        for process in &all {
            children.entry(process.parent).or_default().push(process);
        }
        let mut todo: Vec<&Process> = all
            .iter()
            .filter(|process| {
                // An armed leader was not reaped, so its number is still its own.
                (self.armed && Some(process.pid) == leader) || process.has_in_environment(&wanted)
            })
            .collect();
        let mut members = HashSet::new();
        while let Some(process) = todo.pop() {
            if members.insert(process.clone()) {
                todo.extend(children.get(&process.pid).into_iter().flatten());
            }
        }
        members
    }
}

/// True while the group can only be ours: after its last member died the number may be reused.
fn leads(leader: Pid, members: &HashSet<Process>) -> bool {
    let number = leader.as_raw_nonzero().get();
    let no_proc = !Path::new("/proc/self/stat").exists();
    no_proc || members.iter().any(|member| member.pid == number || member.group == number)
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if self.armed {
            self.kill();
        }
    }
}

/// A process as /proc tells it. The start time tells it from a later one of the same number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    started: u64,
}

impl Process {
    /// All living processes, zombies excluded. Empty without /proc.
    fn all() -> Vec<Self> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries
            .flatten()
            .filter_map(|entry| Self::read(entry.file_name().to_str()?.parse().ok()?))
            .collect()
    }

    fn read(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may hold anything, also spaces and parentheses; what follows it may not.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let state = *fields.first()?;
        (state != "Z" && state != "X").then_some(())?;
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    fn lives(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.started == self.started)
    }

    fn has_in_environment(&self, entry: &str) -> bool {
        fs::read(format!("/proc/{}/environ", self.pid))
            .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|e| e == entry.as_bytes()))
    }
}
