use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::*;

/// Only to catch what hangs.
const LONG: Duration = Duration::from_mins(1);

fn environment() -> Vec<(OsString, OsString)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    vec![("PATH".into(), path), ("TERM".into(), "xterm-256color".into())]
}

fn shell(script: &str) -> PtyCommand {
    let argv = ["sh", "-c", script].map(OsString::from).to_vec();
    PtyCommand { argv, cwd: PathBuf::from("/"), environment: environment() }
}

fn start(script: &str) -> PtyChild {
    start_with(script, &Marker::new(), &Timings::brisk())
}

fn start_with(script: &str, marker: &Marker, timings: &Timings) -> PtyChild {
    PtyChild::spawn(&shell(script), WindowSize::default(), marker, timings).unwrap()
}

/// Waits until the screen shows a text.
async fn shows(child: &PtyChild, text: &str) {
    let mut changes = child.screen().changes();
    let seen = async {
        while !child.screen().text().contains(text) {
            changes.borrow_and_update();
            if child.screen().text().contains(text) {
                break;
            }
            changes.changed().await.unwrap();
        }
    };
    let seen = tokio::time::timeout(LONG, seen).await;
    assert!(seen.is_ok(), "{text:?} was not seen but {:?}", child.screen().text());
}

async fn bounded<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, what).await.expect("it hangs")
}

/// Fields of /proc/<pid>/stat after the name: state, parent, group, session, terminal, its group.
fn stat(pid: u32) -> Vec<i64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().skip(1).take(5).map(|field| field.parse().unwrap()).collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_worker_leads_its_session_on_a_controlling_terminal_with_a_size() {
    let size = WindowSize { columns: 77, rows: 33 };
    let script = "stty size; echo here > /dev/tty; pwd; echo \"<$FOO>\"; env | wc -l; read x";
    let mut command = shell(script);
    command.environment.push(("FOO".into(), "bar".into()));
    let child = PtyChild::spawn(&command, size, &Marker::new(), &Timings::brisk()).unwrap();
    shows(&child, "<bar>").await;
    let text = child.screen().text();
    assert!(text.contains("33 77\n") && text.contains("here\n"), "{text}");
    assert!(text.lines().any(|line| line == "/"), "{text}");
    let pid = i64::from(child.id().pid());
    let [_, group, session, terminal, foreground] = stat(child.id().pid())[..] else { panic!() };
    assert_eq!((group, session, foreground), (pid, pid, pid));
    assert_ne!(terminal, 0);
    // Ours may be led by a process that cannot be seen from here, and have no number then.
    assert_ne!(session, stat(std::process::id())[2]);
    assert_eq!(bounded(child.end()).await, []);
}

#[tokio::test]
async fn a_size_of_zero_is_not_passed_on() {
    let command = shell("stty size; read x");
    let size = WindowSize { columns: 0, rows: 0 };
    let child = PtyChild::spawn(&command, size, &Marker::new(), &Timings::brisk()).unwrap();
    let mut changes = child.screen().changes();
    while !child.screen().tail().contains("1 1") {
        bounded(changes.changed()).await.unwrap();
    }
    assert_eq!(bounded(child.end()).await, []);
}

#[tokio::test]
async fn a_new_size_reaches_the_child_and_the_screen() {
    let child = start("trap 'stty size; exit' WINCH; echo ready; while :; do read x; done");
    shows(&child, "ready").await;
    child.resize(WindowSize { columns: 55, rows: 22 });
    shows(&child, "22 55").await;
    assert_eq!(child.screen().view().columns, 55);
    assert_eq!(bounded(child.end()).await, []);
}

#[tokio::test]
async fn nothing_is_inherited() {
    let child = start("env | cut -d= -f1 | sort | tr '\\n' ' '; echo end; read x");
    shows(&child, "end").await;
    let text = child.screen().text();
    for name in text.split_whitespace() {
        let known = ["CLAW_WORKER", "PATH", "TERM", "SHELL", "PWD", "OLDPWD", "SHLVL", "_", "end"];
        assert!(known.contains(&name), "{name}");
    }
    assert!(text.contains("CLAW_WORKER"));
    assert_eq!(bounded(child.end()).await, []);
}

#[test]
fn what_cannot_be_started_is_told_by_kind() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let spawn = |program: &str, cwd: &str| {
        let argv = vec![program.into()];
        let command = PtyCommand { argv, cwd: cwd.into(), environment: environment() };
        let size = WindowSize::default();
        PtyChild::spawn(&command, size, &Marker::new(), &Timings::brisk()).err().unwrap()
    };
    for program in ["no-such-program-anywhere", "/no/such/program", "./none", "/etc/passwd", "/"] {
        let error = spawn(program, "/");
        assert!(matches!(error, WorkerError::ProgramMissing { .. }), "{program}: {error}");
    }
    let error = spawn("sh", "/no/such/folder");
    assert!(matches!(error, WorkerError::Spawn { .. }), "{error}");
    assert!(error.to_string().contains("/no/such/folder"), "{error}");
}

#[tokio::test]
async fn the_end_is_told_with_its_status_and_after_the_last_words() {
    for (script, code, signal, text) in [
        ("echo bye; exit 0", Some(0), None, "exit status 0"),
        ("echo bye; exit 3", Some(3), None, "exit status 3"),
        ("echo bye; kill -9 $$", None, Some(9), "killed by signal 9"),
        // What is left behind holds the terminal open.
        ("trap '' HUP; sleep 320 & echo bye; exit 4", Some(4), None, "exit status 4"),
        // Nobody holds it open, and the child lives on for a moment.
        (
            "echo bye; exec </dev/null >/dev/null 2>&1; sleep 0.1; exit 5",
            Some(5),
            None,
            "exit status 5",
        ),
    ] {
        let child = start(script);
        let exit = bounded(child.exited()).await;
        assert_eq!((exit, exit.to_string()), (Exit { code, signal }, text.to_owned()), "{script}");
        assert_eq!(child.screen().text(), "bye", "{script}");
        assert_eq!(bounded(child.exited()).await, exit);
        // Not reaped: its id cannot have been given to anybody else.
        assert!(std::fs::exists(format!("/proc/{}", child.id().pid())).unwrap());
        let pid = child.id().pid();
        assert_eq!(bounded(child.end()).await, [], "{script}");
        assert!(!std::fs::exists(format!("/proc/{pid}")).unwrap(), "{script}");
    }
}

#[tokio::test]
async fn a_prompt_of_one_mebibyte_arrives_whole_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("arrived");
    let sent: Vec<u8> = (0..1024 * 1024_u32).map(|n| (n * 7 + n / 251) as u8).collect();
    let script = format!(
        "stty raw -echo; echo ready; head -c {} > {}; echo complete",
        sent.len(),
        file.display()
    );
    let child = start(&script);
    shows(&child, "ready").await;
    bounded(child.write(&sent)).await.unwrap();
    assert_eq!(child.input().accepted(), sent.len() as u64);
    shows(&child, "complete").await;
    assert!(std::fs::read(&file).unwrap() == sent);
    assert_eq!(bounded(child.end()).await, []);
}

#[tokio::test]
async fn writers_wait_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("arrived");
    let script =
        format!("stty raw -echo; echo ready; head -c 200000 > {}; echo complete", file.display());
    let child = start(&script);
    shows(&child, "ready").await;
    let (first, second) = (child.input().clone(), child.input().clone());
    let (a, b) = (vec![b'a'; 100_000], vec![b'b'; 100_000]);
    let (a, b) = bounded(async { tokio::join!(first.write(&a), second.write(&b)) }).await;
    a.unwrap();
    b.unwrap();
    shows(&child, "complete").await;
    let arrived = std::fs::read(&file).unwrap();
    assert!(arrived[..100_000].iter().all(|byte| *byte == b'a'));
    assert!(arrived[100_000..].iter().all(|byte| *byte == b'b'));
    assert_eq!(bounded(child.end()).await, []);
}

#[tokio::test]
async fn a_child_that_does_not_read_fails_at_its_deadline_and_blocks_no_other() {
    let timings = Timings { write: Duration::from_millis(300), ..Timings::brisk() };
    let deaf = start_with("stty raw -echo; echo ready; sleep 321", &Marker::new(), &timings);
    let other = start("stty -echo; echo ready; while read x; do echo \"got $x\"; done");
    shows(&deaf, "ready").await;
    shows(&other, "ready").await;
    let big = vec![b'x'; 1024 * 1024];
    let input = deaf.input().clone();
    let stuck = tokio::spawn(async move { input.write(&big).await });
    // The other one is served while the first does not read.
    for round in 0..5 {
        other.write(format!("{round}\n").as_bytes()).await.unwrap();
        shows(&other, &format!("got {round}")).await;
    }
    let error = bounded(stuck).await.unwrap().unwrap_err();
    let WorkerError::NotReading { accepted, total, after } = error else { panic!("{error}") };
    assert_eq!((total, after >= timings.write), (1024 * 1024, true));
    assert!(accepted > 0 && accepted < total, "{accepted}");
    assert_eq!(deaf.input().accepted(), accepted as u64);
    // The next one does not wait for long either, and nothing hangs at the end.
    let error = bounded(deaf.write(b"more")).await.unwrap_err();
    assert!(matches!(error, WorkerError::NotReading { accepted: 0, total: 4, .. }), "{error}");
    assert_eq!(bounded(deaf.end()).await, []);
    assert_eq!(bounded(other.end()).await, []);
}

#[tokio::test]
async fn a_child_that_reads_slowly_is_waited_for() {
    let timings = Timings { write: Duration::from_millis(600), ..Timings::brisk() };
    // Takes longer than the patience in all, but never stops for that long.
    let script = "stty raw -echo; echo ready; \
        for n in 1 2 3 4 5 6 7 8 9 10; do head -c 20000 > /dev/null; sleep 0.15; done; echo complete";
    let child = start_with(script, &Marker::new(), &timings);
    shows(&child, "ready").await;
    bounded(child.write(&vec![b'x'; 200_000])).await.unwrap();
    shows(&child, "complete").await;
    assert_eq!(bounded(child.end()).await, []);
}

#[tokio::test]
async fn output_goes_on_while_a_write_is_stuck_and_the_end_of_the_worker_ends_the_write() {
    let timings = Timings { write: LONG, ..Timings::brisk() };
    let script =
        "stty raw -echo; n=0; while :; do n=$((n + 1)); echo \"tick $n.\"; sleep 0.02; done";
    let child = start_with(script, &Marker::new(), &timings);
    shows(&child, "tick 1.").await;
    let input = child.input().clone();
    let stuck = {
        let input = input.clone();
        tokio::spawn(async move { input.write(&vec![b'x'; 1024 * 1024]).await })
    };
    while input.accepted() == 0 {
        tokio::task::yield_now().await;
    }
    let mut changes = child.screen().changes();
    for _ in 0..3 {
        bounded(changes.changed()).await.unwrap();
    }
    assert!(!stuck.is_finished());
    assert_eq!(bounded(child.end()).await, []);
    assert!(matches!(bounded(stuck).await.unwrap(), Err(WorkerError::Stopped)));
    assert!(matches!(bounded(input.write(b"x")).await, Err(WorkerError::Stopped)));
}

#[tokio::test]
async fn writing_to_a_child_that_is_gone_fails_at_once() {
    let timings = Timings { write: LONG * 10, ..Timings::brisk() };
    let child = start_with("exit 0", &Marker::new(), &timings);
    bounded(child.exited()).await;
    let error = bounded(child.write(b"hello")).await.unwrap_err();
    assert!(matches!(error, WorkerError::Stopped), "{error}");
    assert_eq!(child.input().accepted(), 0);
    assert_eq!(bounded(child.end()).await, []);
}

#[tokio::test]
async fn a_child_that_ignores_everything_ends_in_bounded_time_with_all_it_started() {
    let marker = Marker::new();
    let script = "trap '' HUP INT QUIT TERM; stty raw -echo; \
        (setsid sh -c 'trap \"\" HUP INT TERM; echo one; while :; do sleep 323; done' &); \
        (trap '' HUP TERM; sleep 324 &); \
        yes & echo two; while :; do sleep 325; done";
    let child = start_with(script, &marker, &Timings::brisk());
    shows(&child, "y").await;
    let input = child.input().clone();
    let writing = tokio::spawn(async move { input.write(&vec![b'x'; 1024 * 1024]).await });
    let (id, before) = (child.id(), Instant::now());
    assert!(process::collect(Some(id), &marker).len() > 1);
    assert_eq!(bounded(child.end()).await, []);
    assert!(before.elapsed() < LONG / 2);
    assert_eq!(process::collect(Some(id), &marker), []);
    assert!(bounded(writing).await.unwrap().is_err());
}

#[tokio::test]
async fn what_a_child_left_behind_ends_with_it_also_when_it_was_killed_first() {
    let marker = Marker::new();
    let script =
        "(setsid sh -c 'trap \"\" TERM HUP; echo ready; sleep 326; sleep 327' &); sleep 328";
    let child = start_with(script, &marker, &Timings::brisk());
    shows(&child, "ready").await;
    let pid = Pid::from_raw(i32::try_from(child.id().pid()).unwrap()).unwrap();
    rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(bounded(child.exited()).await.signal, Some(9));
    assert!(!process::collect(None, &marker).is_empty());
    assert_eq!(bounded(child.end()).await, []);
    assert_eq!(process::collect(None, &marker), []);
}

#[tokio::test]
async fn who_has_no_time_kills_at_once() {
    let marker = Marker::new();
    let slow = Timings { terminate: LONG * 10, ..Timings::brisk() };
    let script = "trap '' TERM HUP; (setsid sleep 333 &); echo ready; sleep 334; sleep 335";
    let child = start_with(script, &marker, &slow);
    shows(&child, "ready").await;
    let patience = Patience { terminate: Duration::ZERO, kill: LONG };
    assert_eq!(bounded(child.end_within(patience)).await, []);
    assert_eq!(process::collect(None, &marker), []);
}

#[tokio::test]
async fn dropping_ends_it_too() {
    let marker = Marker::new();
    // It has less time than one whose end somebody waits for.
    let timings = Timings { terminate: LONG * 10, ..Timings::default() };
    assert!(timings.terminate_abandoned < Duration::from_secs(2));
    let script = "trap '' TERM HUP; echo ready; sleep 329; sleep 330";
    let child = start_with(script, &marker, &timings);
    shows(&child, "ready").await;
    let id = child.id();
    let handle = process::open(Pid::from_raw(i32::try_from(id.pid()).unwrap()).unwrap()).unwrap();
    drop(child);
    let mut polled = [rustix::event::PollFd::new(&handle, rustix::event::PollFlags::IN)];
    let at_most = rustix::event::Timespec::try_from(LONG).unwrap();
    assert_eq!(rustix::event::poll(&mut polled, Some(&at_most)).unwrap(), 1);
    assert!(!id.lives());
}

#[tokio::test]
async fn output_without_end_does_not_fill_the_memory_or_stop_us() {
    let child = start("yes 'a long line of text that is repeated' & sleep 331");
    shows(&child, "repeated").await;
    let mut changes = child.screen().changes();
    for _ in 0..200 {
        bounded(changes.changed()).await.unwrap();
        changes.borrow_and_update();
    }
    assert!(child.screen().tail().len() <= 64 * 1024);
    assert_eq!(bounded(child.end()).await, []);
}

/// Descriptors and threads of this process that name a pty or were made by it.
#[cfg(target_os = "linux")]
fn ours(folder: &str) -> usize {
    let of_workers = |path: &Path| {
        let named = |text: String| text.contains("claw-pty") || text.contains("claw-end");
        std::fs::read_to_string(path.join("comm")).is_ok_and(named)
            || std::fs::read_link(path).is_ok_and(|to| {
                let to = to.to_string_lossy().into_owned();
                to.contains("ptmx") || to.contains("/pts/") || to.contains("[pidfd]")
            })
    };
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries.filter(|entry| of_workers(&entry.path())).count()
}

/// In a process of its own, since the other tests open ptys as well.
#[cfg(target_os = "linux")]
#[test]
fn a_hundred_starts_and_ends_leave_nothing() {
    let test = "child::tests::role_of_a_hundred_rounds";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("CLAW_TEST_ROLE", "rounds")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("a hundred rounds left nothing"), "{said}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn role_of_a_hundred_rounds() {
    if std::env::var_os("CLAW_TEST_ROLE").is_none_or(|role| role != "rounds") {
        return;
    }
    let count = |folder| std::fs::read_dir(folder).unwrap().count();
    let marker = Marker::new();
    let mut before = None;
    for round in 0..101 {
        let child = start_with(
            "(setsid sleep 332 &); echo ready; read x",
            &marker.worker(round),
            &Timings::brisk(),
        );
        shows(&child, "ready").await;
        child.write(b"x").await.unwrap();
        if round % 3 == 0 {
            child.write(b"\n").await.unwrap();
            bounded(child.exited()).await;
        }
        assert_eq!(bounded(child.end()).await, []);
        // The first round opens what is opened once.
        before.get_or_insert_with(|| count("/proc/self/fd"));
    }
    assert_eq!(process::collect(None, &marker), []);
    assert_eq!(ours("/proc/self/fd"), 0);
    // A thread that has said its last word needs a moment to be gone.
    let deadline = Instant::now() + LONG;
    while ours("/proc/self/task") > 0 {
        assert!(Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
    assert_eq!(Some(count("/proc/self/fd")), before);
    let ended = rustix::process::waitpid(None, rustix::process::WaitOptions::NOHANG);
    assert!(matches!(ended, Err(rustix::io::Errno::CHILD)), "a child was not reaped: {ended:?}");
    println!("a hundred rounds left nothing");
}
