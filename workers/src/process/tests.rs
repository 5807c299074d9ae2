use std::process::{Child, Command, Stdio};

use super::*;

const PATIENCE: Patience =
    Patience { terminate: Duration::from_millis(300), kill: Duration::from_secs(5) };

/// A shell that carries a marker; reaped at its end.
struct Shell(Child);

impl Shell {
    /// Runs a script, and returns when it has said `ready`.
    fn run(marker: &Marker, script: &str) -> Self {
        use std::io::BufRead as _;
        let mut child = Command::new("sh")
            .args(["-c", script])
            .env(MARKER_VARIABLE, marker.as_str())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        std::io::BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    fn id(&self) -> ProcessId {
        ProcessId::of(self.0.id()).unwrap()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_marker_covers_itself_and_its_workers_only() {
    let ours = Marker::from("ab");
    assert!(ours.covers(b"ab") && ours.covers(b"ab.1"));
    assert!(!ours.covers(b"abc") && !ours.covers(b"a") && !ours.covers(b""));
    let one = ours.worker(1);
    assert!(one.covers(b"ab.1"));
    assert!(!one.covers(b"ab.10") && !one.covers(b"ab") && !one.covers(b"ab.2"));
}

#[cfg(target_os = "linux")]
#[test]
fn names_of_programs_do_not_confuse_the_table() {
    let pid = Pid::INIT;
    let stat = |name: &str, state: &str, threads: u32| {
        let line =
            format!("1 ({name}) {state} 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 4711 0 0\n");
        table::read_stat(pid, line.as_bytes()).unwrap()
    };
    for name in ["sh", "a) S 1 1 1", "(", "x y z", "\u{fffd}"] {
        let row = stat(name, "S", 1);
        assert_eq!((row.parent, row.session), (Pid::from_raw(7), Pid::from_raw(9)), "{name}");
        assert_eq!((row.id.started, row.lives), (4711, true), "{name}");
    }
    assert!(!stat("sh", "Z", 1).lives);
    // Its first thread has ended, others work on.
    assert!(stat("sh", "Z", 3).lives);
    assert!(table::read_stat(pid, b"junk").is_none());
    assert!(table::read_stat(pid, b"1 (cut) S 1").is_none());
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_in_the_middle_of_an_exec_is_told_from_one_without_environment() {
    use table::{EnvironmentSize, environment_size};
    let stat = |flags: u32, memory: u64, code: u64, start: u64, end: u64| {
        let line = format!(
            "9 (sh) R 7 8 9 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 4711 {memory} 0 1 {code} 0 0 0 0 \
             0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 {start} {end} 0\n"
        );
        environment_size(line.as_bytes())
    };
    let rows = [
        (stat(0x0040_0000, 4096, 1, 500, 700), EnvironmentSize::Bytes(200)),
        (stat(0x0040_0000, 4096, 1, 500, 500), EnvironmentSize::Bytes(0)),
        (stat(0x0040_0000, 4096, 0, 0, 0), EnvironmentSize::InExec),
        (stat(0x0040_0000, 4096, 0, 500, 500), EnvironmentSize::InExec),
        (stat(0x0020_8040, 0, 0, 0, 0), EnvironmentSize::NoneAtAll),
        (stat(0x0040_0000, 0, 0, 0, 0), EnvironmentSize::NoneAtAll),
        (environment_size(b"junk"), EnvironmentSize::NoneAtAll),
    ];
    for (found, expected) in rows {
        assert_eq!(found, expected);
    }
    let us = std::fs::read("/proc/self/stat").unwrap();
    let environ = std::fs::read("/proc/self/environ").unwrap();
    assert_eq!(environment_size(&us), EnvironmentSize::Bytes(environ.len()));
}

#[cfg(target_os = "linux")]
#[test]
fn one_that_becomes_another_program_again_and_again_is_always_found() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("again");
    // Out of the family and of the session: only the marker is left to find it by.
    std::fs::write(&script, "exec sh \"$0\"").unwrap();
    let marker = Marker::new();
    let begun = format!("(setsid sh '{}' &) ; echo ready; exec sleep 300", script.display());
    let shell = Shell::run(&marker, &begun);
    wait_for_members(&marker, 2);
    for look in 0..1000 {
        assert_eq!(collect(None, &marker).len(), 2, "at look {look}");
    }
    assert_eq!(end_tree_now(Some(shell.id()), &marker, PATIENCE), []);
    assert_eq!(collect(None, &marker), []);
}

#[test]
fn what_left_the_session_and_lost_its_parent_is_found_by_the_marker() {
    let marker = Marker::new();
    // The parent in between ends at once, so that the sleep belongs to process 1.
    let shell = Shell::run(&marker.worker(1), "(setsid sleep 301 &) ; echo ready; exec sleep 302");
    let found = wait_for_members(&marker, 2);
    assert!(found.contains(&shell.id()));
    assert_eq!(collect(None, &marker.worker(1)).len(), 2);
    assert_eq!(collect(None, &marker.worker(2)), []);
    assert_eq!(end_tree_now(None, &marker, PATIENCE), []);
    assert!(found.iter().all(|id| !id.lives()));
}

#[test]
fn what_cleaned_its_environment_is_found_by_descent_and_session() {
    let marker = Marker::new();
    let shell = Shell::run(
        &marker,
        "env -i setsid sh -c 'sleep 303 & sleep 304; true' & \
         env -i sh -c 'sleep 305; true' & echo ready; wait",
    );
    // Two shells and three sleeps, besides the first shell.
    let found = wait_for_members_of(Some(shell.id()), &marker, 6);
    assert_eq!(end_tree_now(Some(shell.id()), &marker, PATIENCE), []);
    assert!(found.iter().all(|id| !id.lives()));
}

#[test]
fn what_ignores_termination_is_killed() {
    let marker = Marker::new();
    let shell = Shell::run(
        &marker,
        "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; sleep 306; sleep 307' &); \
         echo ready; while :; do sleep 308; done",
    );
    let found = wait_for_members(&marker, 4);
    assert_eq!(end_tree_now(Some(shell.id()), &marker, PATIENCE), []);
    assert!(found.iter().all(|id| !id.lives()));
    assert_eq!(collect(None, &marker), []);
}

#[test]
fn what_is_started_during_the_end_ends_too() {
    let marker = Marker::new();
    let shell = Shell::run(
        &marker,
        "trap 'setsid sleep 309 & setsid sleep 310 & exit 0' TERM; echo ready; \
         while :; do sleep 1; done",
    );
    assert_eq!(end_tree_now(Some(shell.id()), &marker, PATIENCE), []);
    assert_eq!(collect(None, &marker), []);
}

#[test]
fn what_was_stopped_can_obey() {
    let marker = Marker::new();
    let shell = Shell::run(&marker, "trap 'exit 0' TERM; echo ready; kill -STOP $$; sleep 311");
    assert_eq!(end_tree_now(Some(shell.id()), &marker, PATIENCE), []);
    assert!(!shell.id().lives());
}

#[test]
fn an_id_that_belongs_to_another_process_by_now_is_left_alone() {
    let marker = Marker::new();
    let bystander = Shell::run(&marker, "echo ready; exec sleep 312");
    let before = ProcessId { started: bystander.id().started - 1, ..bystander.id() };
    assert!(!before.lives());
    assert!(Target::of(before).is_none());
    assert_eq!(end_tree_now(Some(before), &Marker::new(), PATIENCE), []);
    assert!(bystander.id().lives());
    // Where there are no process descriptors the start time is looked at before each signal.
    Target { id: before, handle: None }.signal(Signal::KILL);
    assert!(bystander.id().lives());
    assert_eq!(end_tree_now(None, &marker, PATIENCE), []);
}

#[test]
fn without_process_descriptors_the_end_is_seen_too() {
    let shell = Shell::run(&Marker::new(), "trap '' TERM; echo ready; exec sleep 313");
    let mut targets = Targets(vec![Target { id: shell.id(), handle: None }]);
    targets.wait(Instant::now() + Duration::from_millis(50));
    assert_eq!(targets.ids(), [shell.id()]);
    targets.0[0].signal(Signal::KILL);
    targets.wait(Instant::now() + Duration::from_secs(10));
    assert_eq!(targets.ids(), []);
}

#[test]
fn nothing_to_end_takes_no_time() {
    let before = Instant::now();
    let patience = Patience { terminate: Duration::from_mins(1), kill: Duration::from_mins(1) };
    assert_eq!(end_tree_now(None, &Marker::new(), patience), []);
    assert!(before.elapsed() < Duration::from_secs(30));
}

fn wait_for_members(marker: &Marker, count: usize) -> Vec<ProcessId> {
    wait_for_members_of(None, marker, count)
}

/// Shells need a moment to start what they start; nothing tells of it.
fn wait_for_members_of(root: Option<ProcessId>, marker: &Marker, count: usize) -> Vec<ProcessId> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let found = collect(root, marker);
        if found.len() == count {
            return found;
        }
        assert!(Instant::now() < deadline, "{} of {count}", found.len());
        thread::yield_now();
    }
}
