//! Runs the real `claw` on a real pseudo-terminal and looks at it as a person would.
//!
//! Each run has a home and a workspace of its own and none of the caller's credentials. Waiting
//! means waiting for output, bounded by [`PATIENCE`]; a wait that fails shows the screen.

#![expect(clippy::expect_used, reason = "support code fails the test that uses it by panicking")]
#![expect(clippy::missing_panics_doc, reason = "panicking is how a test fails")]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, MasterPty, PtySize, SlavePty, native_pty_system};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tempfile::TempDir;

use crate::mock_api::PATIENCE;
use crate::screen::{Modes, Screen};

/// The program under test, built once. `CLAW_TEST_BINARY` names another one.
pub fn claw_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("CLAW_TEST_BINARY") {
        Some(path) => path.into(),
        None => built().join("claw"),
    })
}

/// The stand-in for the Claude Code CLI, built once.
pub fn fake_claude_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| built().join("fake-claude"))
}

/// The folder with all programs of the workspace, built once.
fn built() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        // <target>/<profile>/deps/<this test>
        let test = std::env::current_exe().expect("the test knows its own file");
        let profile = test.parent().and_then(Path::parent).expect("a test lies in deps/");
        let target = profile.parent().expect("a profile lies in the target folder");
        let mut build = Command::new(env!("CARGO"));
        // The whole workspace, so that the features are those of `cargo test --workspace` and
        // nothing is compiled twice.
        let programs = ["--bin", "claw", "--bin", "fake-claude"];
        build.args(["build", "--quiet", "--workspace"]).args(programs).arg("--target-dir");
        build.arg(target).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        // What cargo tells this test about its package must not reach the build: build scripts
        // that look at it would run again each time.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|start| name.starts_with(start)) {
                build.env_remove(&name);
            }
        }
        if profile.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo runs").success(), "building claw failed");
        profile.to_owned()
    })
}

/// What to run, before it runs.
pub struct Harness {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    size: (u16, u16),
    home: Arc<TempDir>,
    workspace: Arc<TempDir>,
}

impl Default for Harness {
    fn default() -> Self {
        Self::new()
    }
}

impl Harness {
    /// `claw tui` on 120 columns and 40 rows, in an empty workspace and an empty home.
    pub fn new() -> Self {
        Self { arguments: vec!["tui".to_owned()], ..Self::without_arguments() }
    }

    /// The same surroundings, for a program that is no `claw tui`.
    pub fn without_arguments() -> Self {
        Self {
            arguments: Vec::new(),
            environment: vec![("TERM".to_owned(), "xterm-256color".to_owned())],
            size: (120, 40),
            home: Arc::new(tempfile::tempdir().expect("a temporary home")),
            workspace: Arc::new(tempfile::tempdir().expect("a temporary workspace")),
        }
    }

    #[must_use]
    pub fn size(mut self, columns: u16, rows: u16) -> Self {
        self.size = (columns, rows);
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Sets a variable of the environment, which is otherwise nearly empty.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Writes a file into the workspace, or an executable one into the home.
    #[must_use]
    pub fn file(self, path: &str, content: &str) -> Self {
        write_file(&self.workspace.path().join(path), content);
        self
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    /// Writes an executable script into the home and returns its path.
    pub fn script(&self, name: &str, content: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.home.path().join(name);
        write_file(&path, content);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
            .expect("a script can be made executable");
        path
    }

    /// Runs `claw` with these arguments instead, without a terminal: what it printed and how it
    /// ended.
    pub fn run_without_terminal(&self, arguments: &[&str], input: &str) -> std::process::Output {
        let mut command = self.command(arguments);
        let mut child = command.spawn().expect("claw starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A program that does not read its input closes the pipe: that is its right.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("claw ends")
    }

    /// `claw` with these arguments, before it runs, with pipes for all that it says.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(claw_binary());
        command.args(arguments).env_clear();
        for (name, value) in self.inherited() {
            command.env(name, value);
        }
        command.current_dir(self.workspace.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The environment of the program.
    fn inherited(&self) -> Vec<(String, OsString)> {
        let mut all: Vec<_> = ["PATH", "LLVM_PROFILE_FILE"]
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?)))
            .collect();
        all.push(("HOME".to_owned(), self.home.path().into()));
        let own = self.environment.iter();
        all.extend(own.map(|(name, value)| (name.clone(), value.into())));
        all
    }

    /// Starts it as a person does: as the job of a shell, which says `[back <status>]` when it has
    /// the terminal again.
    pub fn start(self) -> Running {
        self.start_and_then(":")
    }

    /// The same, with shell commands that run when the shell has the terminal again.
    pub fn start_and_then(self, afterwards: &str) -> Running {
        let running = self.start_program(claw_binary(), afterwards);
        running.wait_until("the first frame", |seen| seen.screen.modes.has(1049));
        running
    }

    /// Another program with the arguments of this harness, as the job of a shell. Waits for nothing.
    pub fn start_program(self, program: &Path, afterwards: &str) -> Running {
        let mut job = format!("'{}'", program.display());
        for argument in &self.arguments {
            let _ = write!(job, " '{argument}'");
        }
        // The last `read` keeps the shell, and with it the terminal, alive for a look at it.
        let script = format!("set -m; {job}; echo \"[back $?]\"; {afterwards}; read -r _");
        let mut command = CommandBuilder::new("bash");
        command.args(["--norc", "--noprofile", "-c", &script]);
        self.spawn(command)
    }

    fn spawn(self, mut command: CommandBuilder) -> Running {
        command.env_clear();
        for (name, value) in self.inherited() {
            command.env(name, value);
        }
        command.cwd(self.workspace.path());
        let (columns, rows) = self.size;
        let pty = native_pty_system().openpty(pty_size(columns, rows)).expect("a pty");
        let line_before = line_settings(&*pty.master);
        let mut child = pty.slave.spawn_command(command).expect("claw starts");
        let shared = Arc::new(Shared {
            seen: Mutex::new(Seen { screen: Screen::new(columns, rows), log: Vec::new() }),
            changed: Condvar::new(),
            hang_up: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        });
        let reader = pty.master.try_clone_reader().expect("a reader");
        let shell = child.process_id().and_then(|pid| i32::try_from(pid).ok());
        thread::spawn(move || child.wait());
        let follower = Arc::clone(&shared);
        Running {
            shared,
            follower: Some(thread::spawn(move || follower.follow(reader))),
            writer: Some(pty.master.take_writer().expect("a writer")),
            pty: Some((pty.master, pty.slave)),
            shell: shell.and_then(Pid::from_raw).expect("a process id"),
            claw: OnceLock::new(),
            line_before,
            environment: self.environment,
            home: self.home,
            workspace: self.workspace,
        }
    }
}

fn write_file(path: &Path, content: &str) {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).expect("a folder in a temporary folder");
    }
    std::fs::write(path, content).expect("a file in a temporary folder");
}

fn pty_size(cols: u16, rows: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

/// The line settings, in a form that shows every bit of them.
fn line_settings(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios())
}

struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
    hang_up: AtomicBool,
    stopped: AtomicBool,
}

/// Everything that came out so far.
pub struct Seen {
    pub screen: Screen,
    /// All bytes since the start.
    pub log: Vec<u8>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, mut reader: Box<dyn Read + Send>) {
        let mut buffer = [0_u8; 16 * 1024];
        // Ends with an error when the last program on the terminal has gone.
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            let mut seen = self.lock();
            seen.screen.feed(&buffer[..count]);
            seen.log.extend_from_slice(&buffer[..count]);
            drop(seen);
            self.changed.notify_all();
            let seen = self.lock();
            let stopped = |_: &mut Seen| self.stopped.load(Ordering::SeqCst);
            drop(self.changed.wait_while(seen, stopped).unwrap_or_else(PoisonError::into_inner));
            if self.hang_up.load(Ordering::SeqCst) {
                return;
            }
        }
    }
}

/// A running program on its terminal.
pub struct Running {
    shared: Arc<Shared>,
    follower: Option<thread::JoinHandle<()>>,
    writer: Option<Box<dyn Write + Send>>,
    pty: Option<(Box<dyn MasterPty + Send>, Box<dyn SlavePty + Send>)>,
    shell: Pid,
    claw: OnceLock<Pid>,
    line_before: String,
    environment: Vec<(String, String)>,
    home: Arc<TempDir>,
    workspace: Arc<TempDir>,
}

impl Running {
    /// `claw tui` once more: the same home, workspace and environment, on a terminal of its own.
    pub fn again(&self) -> Harness {
        Harness {
            arguments: vec!["tui".to_owned()],
            environment: self.environment.clone(),
            size: (120, 40),
            home: Arc::clone(&self.home),
            workspace: Arc::clone(&self.workspace),
        }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    /// The visible text.
    pub fn text(&self) -> String {
        self.shared.lock().screen.text()
    }

    /// Looks at everything that came out so far.
    pub fn look<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.shared.lock())
    }

    /// Waits until the screen shows this text.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        self.wait_until(text, |seen| seen.screen.text().contains(text));
    }

    /// Waits until the screen no longer shows this text.
    #[track_caller]
    pub fn wait_gone(&self, text: &str) {
        self.wait_until(&format!("no {text}"), |seen| !seen.screen.text().contains(text));
    }

    /// Waits until this holds; `what` says in a failure what was waited for.
    #[track_caller]
    pub fn wait_until(&self, what: &str, holds: impl Fn(&Seen) -> bool) {
        if !self.holds_within(PATIENCE, holds) {
            let seen = self.shared.lock();
            panic!(
                "waited for: {what}\nmodes: {:?}\nscreen:\n{}",
                seen.screen.modes,
                seen.screen.text()
            );
        }
    }

    /// True as soon as this holds, false when it does not within the limit.
    pub fn holds_within(&self, limit: Duration, holds: impl Fn(&Seen) -> bool) -> bool {
        let until = Instant::now() + limit;
        let mut seen = self.shared.lock();
        while !holds(&seen) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.shared.changed.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Waits until nothing came out for this long.
    #[track_caller]
    pub fn wait_quiet(&self, window: Duration) {
        let until = Instant::now() + PATIENCE;
        loop {
            let before = self.look(|seen| seen.log.len());
            if !self.holds_within(window, |seen| seen.log.len() != before) {
                return;
            }
            assert!(Instant::now() < until, "never quiet; screen:\n{}", self.text());
        }
    }

    /// Bytes that came out while this long passed.
    pub fn bytes_within(&self, window: Duration) -> usize {
        let before = self.look(|seen| seen.log.len());
        self.holds_within(window, |_| false);
        self.look(|seen| seen.log.len()) - before
    }

    /// Types these bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let writer = self.writer.as_mut().expect("the terminal is open");
        writer.write_all(bytes.as_ref()).and_then(|()| writer.flush()).expect("typing works");
    }

    /// Pastes as a terminal with bracketed paste does.
    pub fn paste(&mut self, text: &str) {
        self.send(format!("\x1b[200~{text}\x1b[201~"));
    }

    /// Changes the size of the terminal window.
    pub fn resize(&self, columns: u16, rows: u16) {
        let (master, _) = self.pty.as_ref().expect("the terminal is open");
        self.shared.lock().screen.resize(columns, rows);
        master.resize(pty_size(columns, rows)).expect("the pty takes a size");
    }

    /// Sends a signal to claw.
    pub fn signal(&self, signal: Signal) {
        // One that has just ended by itself is not a failure here; the status tells.
        let _ = kill_process(self.claw(), signal);
    }

    /// The process id of claw.
    pub fn claw(&self) -> Pid {
        *self.claw.get_or_init(|| {
            let children = children(self.shell);
            *children.first().expect("the shell has a job")
        })
    }

    /// True while claw has not ended.
    pub fn is_alive(&self) -> bool {
        children(self.shell).contains(&self.claw())
    }

    /// Child processes of claw, by their arguments.
    pub fn children_of_claw(&self) -> Vec<(Pid, String)> {
        let arguments = |pid: Pid| {
            let path = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
            std::fs::read_to_string(path).unwrap_or_default().replace('\0', " ")
        };
        children(self.claw()).into_iter().map(|pid| (pid, arguments(pid))).collect()
    }

    /// How often the process gave up the processor by itself so far: its wake-ups.
    pub fn wakeups(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.claw().as_raw_nonzero()))
            .expect("the process is there");
        let count = |task: std::io::Result<std::fs::DirEntry>| -> Option<u64> {
            let status = std::fs::read_to_string(task.ok()?.path().join("status")).ok()?;
            let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        tasks.filter_map(count).sum()
    }

    /// From now on (or no more) the terminal takes nothing, like one whose person pressed Ctrl+S.
    pub fn stop_reading(&self, stopped: bool) {
        self.shared.stopped.store(stopped, Ordering::SeqCst);
        self.shared.changed.notify_all();
    }

    /// Waits until claw has ended. False when it has not within the limit.
    pub fn ends_within(&self, limit: Duration) -> bool {
        ends_within(&self.watch(), limit)
    }

    fn watch(&self) -> OwnedFd {
        pidfd_open(self.claw(), PidfdFlags::empty()).expect("claw is there")
    }

    /// Closes the terminal window, and waits until claw has ended. False when it has not within
    /// the limit.
    pub fn hang_up(&mut self, limit: Duration) -> bool {
        let claw = self.watch();
        self.shared.hang_up.store(true, Ordering::SeqCst);
        // The follower sleeps in a read; a key makes the program, or the line's echo, wake it.
        self.send("x");
        if let Some(follower) = self.follower.take() {
            follower.join().expect("the follower ends");
        }
        self.writer = None;
        self.pty = None;
        ends_within(&claw, limit)
    }

    /// Waits until the shell has the terminal again, and returns the status that it saw.
    #[track_caller]
    pub fn wait_back(&self) -> u32 {
        // After a crash the shell may be quicker than the guard, and speak before the main screen
        // is back; so its words are looked for in the bytes.
        let status = |seen: &Seen| -> Option<u32> {
            let text = String::from_utf8_lossy(&seen.log);
            text.rsplit_once("[back ")?.1.split_once(']')?.0.parse().ok()
        };
        self.wait_until("the shell to be back", |seen| status(seen).is_some());
        self.look(status).expect("just seen")
    }

    /// Asserts that the terminal is as it was before: every mode, the title, the line settings bit
    /// by bit, and the cursor at the start of a line of the main screen.
    #[track_caller]
    pub fn assert_terminal_restored(&self) {
        self.assert_modes_restored();
        self.wait_until("the cursor on a fresh line", |seen| seen.screen.cursor().0 == 0);
    }

    /// The same but for the cursor: after a crash the shell may speak before the guard does.
    #[track_caller]
    pub fn assert_modes_restored(&self) {
        self.wait_until("the modes from before", |seen| seen.screen.modes == Modes::default());
        let (master, _) = self.pty.as_ref().expect("the terminal is open");
        // A guard that had to step in needs a moment more than its first bytes.
        let until = Instant::now() + PATIENCE;
        while line_settings(&**master) != self.line_before && Instant::now() < until {
            thread::yield_now();
        }
        assert_eq!(line_settings(&**master), self.line_before);
        self.look(|seen| assert_eq!(seen.screen.scrollback_clears, 0, "scrollback was cleared"));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What has ended already is as good; the job first, since it is looked up by its parent.
        for pid in children(self.shell).into_iter().chain([self.shell]) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn ends_within(process: &OwnedFd, limit: Duration) -> bool {
    let limit = limit.try_into().expect("a short limit");
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)).expect("poll works") == 1
}

fn children(of: Pid) -> Vec<Pid> {
    let path = format!("/proc/{0}/task/{0}/children", of.as_raw_nonzero());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}
