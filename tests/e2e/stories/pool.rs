//! `claw pool` as a program: the daemon, who asks it, and what is left when it ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Output};
use std::time::{Duration, Instant};

use claw_tests::claude::housekeeping;
use claw_tests::claude_backend::{ClaudeBackend, eventually};
use claw_tests::harness::Harness;
use claw_tests::mock_api::{Gate, MessagesStream};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A daemon that runs, and those who ask it.
struct Daemon {
    claude: ClaudeBackend,
    claw: Harness,
    child: Child,
    socket: PathBuf,
}

impl Daemon {
    fn start(claude: ClaudeBackend, arguments: &[&str]) -> Self {
        let claw = claude.harness();
        let all = [&["pool", "serve"], arguments].concat();
        let mut child = claw.command(&all).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
        Self { claude, claw, child, socket: said.trim().into() }
    }

    fn ask(&self, arguments: &[&str], input: &str) -> Output {
        self.claw.run_without_terminal(&[&["pool", "ask"], arguments].concat(), input)
    }

    fn status(&self) -> Value {
        let output = self.claw.run_without_terminal(&["pool", "status", "--json"], "");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// A connection of a client of our own.
    fn connect(&self) -> Wire {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Wire(BufReader::new(stream))
    }

    /// Ends it as a service is ended; nothing of it is left.
    fn end(mut self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
        assert!(!self.socket.exists());
        assert_eq!(self.claude.worker_processes(), [0; 0]);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Wire(BufReader<UnixStream>);

impl Wire {
    fn send(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }
}

fn echo(claude: &ClaudeBackend) {
    claude.api.answer(|request| {
        let answer = || MessagesStream::say(&format!("re: {}", request.last_user_text()));
        Some(housekeeping(request).unwrap_or_else(answer))
    });
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn it_answers_prompts_from_arguments_and_standard_input_as_text_and_as_json() {
    for transport in ["pty", "stream"] {
        let claude = ClaudeBackend::new();
        echo(&claude);
        let daemon = Daemon::start(claude, &["--transport", transport]);
        let output = daemon.ask(&["hello"], "");
        assert_eq!((output.status.code(), text(&output).as_str()), (Some(0), "re: hello\n"));
        // Given on standard input it is in no list of processes.
        let output = daemon.ask(&["--json"], "from a pipe");
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(reply["text"], "re: from a pipe");
        assert!(reply["usage"]["input_tokens"].as_u64().unwrap() > 0, "{reply}");
        let session = |prompt: &str| {
            let output = daemon.ask(&["--json", "--session", "s", prompt], "");
            let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
            reply["session_id"].as_str().unwrap().to_owned()
        };
        let (one, two) = (session("one"), session("two"));
        assert_eq!(one, two);
        assert_ne!(reply["session_id"], json!(one));
        let status = daemon.status();
        assert_eq!((&status["transport"], &status["max"]), (&json!(transport), &json!(4)));
        assert_eq!(status["sessions"], 1, "{status}");
        daemon.end();
    }
}

#[test]
fn its_socket_is_ours_alone_and_there_is_one_daemon_in_a_place() {
    let daemon = Daemon::start(ClaudeBackend::new(), &["--warm", "0"]);
    let socket = std::fs::metadata(&daemon.socket).unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.mode() & 0o777, 0o600);
    let folder = std::fs::metadata(daemon.socket.parent().unwrap()).unwrap();
    assert_eq!(folder.mode() & 0o777, 0o700);
    let second = daemon.claw.run_without_terminal(&["pool", "serve"], "");
    assert_eq!(second.status.code(), Some(11));
    assert!(String::from_utf8_lossy(&second.stderr).contains("already_running"), "{second:?}");
    assert!(daemon.status()["pid"].as_u64().is_some(), "the first one still answers");

    // What is no socket of a pool is left alone, a dead socket is replaced.
    let place = daemon.socket.with_file_name("other.sock");
    std::fs::write(&place, "not a socket").unwrap();
    let other = ["pool", "serve", "--socket", place.to_str().unwrap()];
    let refused = daemon.claw.run_without_terminal(&other, "");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not_a_socket"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&place).unwrap(), "not a socket");
    std::fs::remove_file(&place).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&place).unwrap());
    let mut again = daemon.claw.command(&[&other[..], &["--warm", "0"]].concat()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(again.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert!(UnixStream::connect(&place).is_ok());
    again.kill().unwrap();
    again.wait().unwrap();

    // A folder that others may enter is no place for it.
    let open = daemon.claw.workspace().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
    let place = open.join("pool.sock");
    let other = ["pool", "serve", "--socket", place.to_str().unwrap()];
    let refused = daemon.claw.run_without_terminal(&other, "");
    assert!(!refused.status.success() && !place.exists(), "{refused:?}");
    daemon.end();
}

#[test]
fn who_hangs_up_cancels_and_frees_the_place() {
    let claude = ClaudeBackend::new();
    let gate = Gate::new();
    let wait = gate.clone();
    claude.api.answer(move |request| {
        let late = || MessagesStream::new().wait(&wait).text(&["late"]).stop("end_turn", 1).reply();
        Some(housekeeping(request).unwrap_or_else(late))
    });
    let daemon = Daemon::start(claude, &["--warm", "0", "--max", "1"]);
    let mut wire = daemon.connect();
    wire.send(&json!({"id": 1, "ask": {"prompt": "go"}}).to_string());
    gate.wait_reached(1);
    assert_eq!(daemon.status()["busy"], 1);
    let hung_up = Instant::now();
    wire.0.get_ref().shutdown(Shutdown::Both).unwrap();
    eventually("the place is free", || daemon.status()["busy"] == 0);
    assert!(hung_up.elapsed() < Duration::from_secs(1), "{:?}", hung_up.elapsed());
    gate.open();
    assert_eq!(text(&daemon.ask(&["again"], "")), "late\n");
    daemon.end();
}

#[test]
fn lines_that_make_no_sense_are_refused_and_the_connection_goes_on() {
    let claude = ClaudeBackend::new();
    echo(&claude);
    let daemon = Daemon::start(claude, &["--warm", "0"]);
    let mut wire = daemon.connect();
    for wrong in
        ["not JSON", "[]", "{}", r#"{"id":1,"ask":{}}"#, r#"{"id":1,"order":{}}"#, "\u{0}\u{1}"]
    {
        wire.send(wrong);
        let answer = wire.receive();
        assert_eq!(answer["error"]["name"], "bad_request", "{wrong}: {answer}");
    }
    wire.send("");
    wire.send(&json!({"id": "mine", "ask": {"prompt": "one"}}).to_string());
    wire.send(&json!({"id": "other", "status": {}}).to_string());
    let answers = [wire.receive(), wire.receive()];
    let of = |id: &str| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(of("mine")["reply"]["text"], "re: one");
    assert!(of("other")["status"]["max"].is_u64());
    // One that never ends is cut off at the limit.
    let mut endless = daemon.connect();
    let chunk = vec![b'x'; 1024 * 1024];
    while endless.0.get_mut().write_all(&chunk).is_ok() {}
    let mut said = String::new();
    let _ = endless.0.read_to_string(&mut said);
    assert!(said.is_empty() || said.contains("line_too_long"), "{said}");
    assert!(daemon.status()["max"].is_u64());
    daemon.end();
}

#[test]
fn failures_have_names_and_codes() {
    let daemon = Daemon::start(ClaudeBackend::new(), &["--warm", "0"]);
    let output = daemon.ask(&["--json", "/clear"], "");
    assert_eq!(output.status.code(), Some(2));
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(error["error"]["name"], "refused_prompt");
    let elsewhere = daemon.ask(&["-C", "/usr", "hello"], "");
    assert_eq!(elsewhere.status.code(), Some(6), "{elsewhere:?}");
    let nowhere = daemon.socket.with_file_name("nobody.sock");
    let nobody = daemon.ask(&["--socket", nowhere.to_str().unwrap(), "hello"], "");
    assert_eq!(nobody.status.code(), Some(11));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("claw pool serve"), "{nobody:?}");
    daemon.end();
}

#[test]
fn the_doctor_of_the_pool_starts_a_worker_and_says_what_became_of_it() {
    for (quirks, code, says) in [
        ("", 0, "is ready in"),
        ("exit-at-start=no good", 1, "start_failed: Claude Code ended at its start"),
    ] {
        let claude = ClaudeBackend::new().quirks(quirks);
        let claw = claude.harness();
        let output = claw.run_without_terminal(&["pool", "doctor"], "");
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(text(&output).contains(says), "{}", text(&output));
        assert_eq!(claude.worker_processes(), [0; 0]);
    }
    let claude = ClaudeBackend::new().setting("program", "/nowhere/claude");
    let output = claude.harness().run_without_terminal(&["pool", "doctor"], "");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn a_daemon_that_is_killed_leaves_no_worker() {
    let claude = ClaudeBackend::new();
    echo(&claude);
    let mut daemon = Daemon::start(claude, &["--warm", "2"]);
    eventually("two are warm", || daemon.status()["warm"] == 2);
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    eventually("no worker lives", || daemon.claude.worker_processes().is_empty());
}
