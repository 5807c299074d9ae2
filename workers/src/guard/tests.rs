use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use super::*;
use crate::child::PtyChild;
use crate::config::WindowSize;
use crate::process::ProcessId;
use crate::pty::PtyCommand;

/// What a killed host leaves must be gone by then; the second half is for a slow machine.
const GONE: Duration = Duration::from_secs(10);
const ROLE: &str = "CLAW_TEST_ROLE";

/// This test program as the guard: the arguments that are added to its command are its last two.
fn guard_command() -> Vec<OsString> {
    let program = std::env::current_exe().unwrap();
    let test = "guard::tests::role_of_the_guard";
    let words = ["env", "CLAW_TEST_ROLE=guard"].map(OsString::from).into_iter();
    words.chain([program.into(), "--exact".into(), test.into()]).collect()
}

#[test]
fn role_of_the_guard() {
    if std::env::var_os(ROLE).is_none_or(|role| role != "guard") {
        return;
    }
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let own = arguments.split_off(arguments.len() - 2);
    assert!(stand([SUBCOMMAND.into()].into_iter().chain(own)).is_some());
}

/// A host with a guard and a worker, which waits to be killed.
#[tokio::test]
async fn role_of_the_host() {
    if std::env::var_os(ROLE).is_none_or(|role| role != "host") {
        return;
    }
    let variable = |name: &str| std::env::var(name).unwrap();
    let marker = Marker::from(variable("HOST_MARKER").as_str());
    let private = PathBuf::from(variable("HOST_PRIVATE"));
    let guard = Guard::spawn(&guard_command(), &marker, &private).unwrap();
    let argv = ["sh", "-c", &variable("HOST_SCRIPT")].map(OsString::from).to_vec();
    let environment = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
    let command = PtyCommand { argv, cwd: "/".into(), environment };
    let (size, timings) = (WindowSize::default(), Timings::default());
    let child = PtyChild::spawn(&command, size, &marker.worker(1), &timings).unwrap();
    let mut changes = child.screen().changes();
    while !child.screen().text().contains("ready") {
        changes.changed().await.unwrap();
    }
    println!("\nguard {}", guard.process.id());
    println!("worker {}", child.id());
    std::future::pending::<()>().await;
}

struct Host {
    process: Child,
    marker: Marker,
    private: tempfile::TempDir,
    guard: ProcessId,
    worker: ProcessId,
    members: Vec<ProcessId>,
}

impl Host {
    /// Starts a host whose worker runs this script up to the word `ready`.
    fn start(script: &str, members: usize) -> Self {
        let marker = Marker::new();
        let private = tempfile::tempdir().unwrap();
        for name in ["7-8-one", "7-8-two", "7-89-other", "unrelated"] {
            let folder = private.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("secret"), "x").unwrap();
        }
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "guard::tests::role_of_the_host", "--nocapture"])
            .env(ROLE, "host")
            .env("HOST_MARKER", marker.as_str())
            .env("HOST_PRIVATE", private.path().join("7-8"))
            .env("HOST_SCRIPT", script)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines =
            BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut told = |what: &str| {
            let pid = lines.find_map(|line| line.strip_prefix(what)?.trim().parse().ok());
            ProcessId::of(pid.unwrap()).unwrap()
        };
        let (guard, worker) = (told("guard"), told("worker"));
        let mut found = collect(None, &marker);
        let deadline = Instant::now() + GONE;
        while found.len() < members {
            assert!(Instant::now() < deadline, "{} of {members}", found.len());
            found = collect(None, &marker);
        }
        Self { process, marker, private, guard, worker, members: found }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        assert_eq!(self.process.wait().unwrap().signal(), Some(9));
    }

    fn folders(&self) -> Vec<String> {
        let entries = self.private.path().read_dir().unwrap().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Waits until the guard has gone home, and looks at what is left.
    fn is_cleaned_up(&self) {
        let deadline = Instant::now() + GONE;
        while self.guard.lives() {
            assert!(Instant::now() < deadline, "the guard is still at work");
            std::thread::yield_now();
        }
        let left: Vec<&ProcessId> = self.members.iter().filter(|id| id.lives()).collect();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(collect(None, &self.marker), []);
        assert_eq!(self.folders(), ["7-89-other", "unrelated"]);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn nothing_of_a_worker_outlives_a_killed_host() {
    let mut host = Host::start("(setsid sleep 340 &); sleep 341 & echo ready; read x", 3);
    host.kill();
    host.is_cleaned_up();
}

#[test]
fn not_even_when_it_ignores_everything() {
    let deaf = "trap '' HUP INT QUIT TERM";
    let script = format!(
        "{deaf}; (setsid sh -c '{deaf}; while :; do sleep 342; done' &); echo ready; \
         while :; do sleep 343; done",
        deaf = deaf.replace('\'', "\"")
    );
    let mut host = Host::start(&script, 4);
    host.kill();
    host.is_cleaned_up();
}

#[test]
fn not_even_when_the_cli_was_killed_first() {
    let script =
        "(setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 344; done' &); echo ready; sleep 345";
    let mut host = Host::start(script, 4);
    let worker = rustix::process::Pid::from_raw(i32::try_from(host.worker.pid()).unwrap()).unwrap();
    rustix::process::kill_process(worker, rustix::process::Signal::KILL).unwrap();
    host.kill();
    host.is_cleaned_up();
}

#[test]
fn the_guard_itself_is_out_of_reach() {
    use rustix::process::{Pid, Signal, getsid, kill_process};
    let mut host = Host::start("(setsid sleep 346 &); echo ready; read x", 2);
    let guard = Pid::from_raw(i32::try_from(host.guard.pid()).unwrap()).unwrap();
    // It needs a moment to withdraw after its start.
    let deadline = Instant::now() + GONE;
    while getsid(Some(guard)) != Ok(guard) || !catches_termination(host.guard.pid()) {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
        kill_process(guard, signal).unwrap();
    }
    host.kill();
    host.is_cleaned_up();
}

/// By the mask of caught signals.
fn catches_termination(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (SIGTERM - 1)) != 0
}

#[test]
fn a_released_guard_does_nothing() {
    let private = tempfile::tempdir().unwrap();
    let marker = Marker::new();
    let mut bystander = Command::new("sleep")
        .arg("347")
        .env(crate::process::MARKER_VARIABLE, marker.worker(1).as_str())
        .spawn()
        .unwrap();
    let guard = Guard::spawn(&guard_command(), &marker, private.path()).unwrap();
    guard.release();
    assert!(bystander.try_wait().unwrap().is_none());
    assert!(private.path().exists());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn other_arguments_are_not_for_the_guard() {
    assert!(stand(["tui".into()].into_iter()).is_none());
    assert!(stand(std::iter::empty()).is_none());
    // Without a marker it would have nothing to tell ours from others by.
    for arguments in [vec![SUBCOMMAND], vec![SUBCOMMAND, "m"], vec![SUBCOMMAND, "", "/tmp/x"]] {
        let code = stand(arguments.into_iter().map(OsString::from));
        assert_eq!(format!("{code:?}"), format!("{:?}", Some(ExitCode::FAILURE)));
    }
}

#[test]
fn only_folders_of_ours_are_removed() {
    let root = tempfile::tempdir().unwrap();
    for (name, stays) in [("1-2", false), ("1-2-abc", false), ("1-23", true), ("1", true)] {
        std::fs::create_dir(root.path().join(name)).unwrap();
        remove_private(&root.path().join("1-2"));
        assert_eq!(root.path().join(name).exists(), stays, "{name}");
    }
    for not_ours in ["/", "", "relative", "/no/such/place"] {
        remove_private(Path::new(not_ours));
    }
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), root.path().join("1-2-link")).unwrap();
    remove_private(&root.path().join("1-2"));
    assert!(outside.path().exists());
}

#[test]
fn the_private_folders_of_a_process_are_known_by_the_beginning_of_their_names() {
    use crate::private_dir::{PrivateDir, own_folders};
    use std::os::unix::fs::PermissionsExt as _;
    let root = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let [one, two] = [(); 2].map(|()| PrivateDir::create(root.path()).unwrap());
    remove_private(&own_folders(root.path()));
    assert!(!one.path().exists() && !two.path().exists());
}
