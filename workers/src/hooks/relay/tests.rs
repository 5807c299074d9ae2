use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Instant;

use super::*;
use crate::event::Verdict;
use crate::hooks::record::HookEvent;
use crate::hooks::server::HookServer;
use crate::private_dir::PrivateDir;
use crate::testing::{fixture, private_root};
use crate::timings::Timings;

/// What the hook prints.
fn printed(folder: &Path, event: &str, payload: &str) -> String {
    let mut output = Vec::new();
    let arguments = [folder.as_os_str().to_owned(), event.into()];
    let _ = relay(arguments.into_iter(), payload.as_bytes(), &mut output);
    String::from_utf8(output).unwrap()
}

fn asked() -> String {
    fixture("hooks/2.1.332/PermissionRequest-Bash.json")
}

/// A server that answers every connection with these bytes once it has read two lines.
fn answering(folder: &PrivateDir, answer: &'static [u8]) -> std::thread::JoinHandle<Vec<String>> {
    folder.write(TOKEN, b"secret").unwrap();
    let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let read = BufReader::new(socket.try_clone().unwrap());
        let lines = read.lines().take(2).map(Result::unwrap).collect();
        socket.write_all(answer).unwrap();
        lines
    })
}

#[tokio::test]
async fn a_hook_tells_its_payload_and_prints_exactly_the_verdict() {
    let root = private_root();
    let folder = PrivateDir::create(root.path()).unwrap();
    let (_server, mut arrivals) = HookServer::open(&folder, &Timings::brisk()).unwrap();
    let path = folder.path().to_owned();
    let telling = path.clone();
    let told = tokio::task::spawn_blocking(move || {
        printed(&telling, "Stop", &fixture("hooks/2.1.332/Stop.json"))
    });
    let arrival = arrivals.recv().await.unwrap().unwrap();
    assert!(matches!(arrival.record.event, HookEvent::Stop { .. }) && arrival.reply.is_none());
    assert_eq!(told.await.unwrap(), "");
    let asking = tokio::task::spawn_blocking(move || printed(&path, "PermissionRequest", &asked()));
    let reply = arrivals.recv().await.unwrap().unwrap().reply.unwrap();
    reply.answer(&Verdict::Allow { updated_input: None }).unwrap();
    let line = asking.await.unwrap();
    assert_eq!(
        line,
        "{\"hookSpecificOutput\":{\"hookEventName\":\"PermissionRequest\",\"decision\":{\"behavior\":\"allow\"}}}\n"
    );
}

#[test]
fn the_token_comes_first_and_the_payload_in_one_line() {
    let root = private_root();
    let folder = PrivateDir::create(root.path()).unwrap();
    let server = answering(&folder, b"{}\n");
    assert_eq!(printed(folder.path(), "PermissionRequest", "{\n\"a\":\r\n1}\n"), "{}\n");
    assert_eq!(server.join().unwrap(), ["secret", "{ \"a\":  1} "]);
}

#[test]
fn no_verdict_means_nothing_is_printed() {
    // Nothing, half a line, something else, and an answer to a hook that did not ask.
    let table: [(&[u8], &str); 5] = [
        (b"", "PermissionRequest"),
        (b"{\"hookSpecificOutput\"", "PermissionRequest"),
        (b"{\"hookSpecificOutput\":{}}", "PermissionRequest"),
        (b"allow\n", "PermissionRequest"),
        (b"{}\n", "PreToolUse"),
    ];
    for (answer, event) in table {
        let root = private_root();
        let folder = PrivateDir::create(root.path()).unwrap();
        let server = answering(&folder, answer);
        assert_eq!(printed(folder.path(), event, &asked()), "", "{answer:?}");
        server.join().unwrap();
    }
}

#[test]
fn a_dead_or_silent_server_is_given_up_without_a_word() {
    let root = private_root();
    let folder = PrivateDir::create(root.path()).unwrap();
    let since = Instant::now();
    // No token, no socket; then a socket that nobody listens to; then no arguments at all.
    assert_eq!(printed(folder.path(), "PermissionRequest", &asked()), "");
    folder.write(TOKEN, b"secret").unwrap();
    assert_eq!(printed(folder.path(), "PermissionRequest", &asked()), "");
    drop(UnixListener::bind(folder.path().join(SOCKET)).unwrap());
    assert_eq!(printed(folder.path(), "PermissionRequest", &asked()), "");
    let mut output = Vec::new();
    let _ = relay(std::iter::empty(), asked().as_bytes(), &mut output);
    assert!(output.is_empty());
    assert!(since.elapsed() < Duration::from_secs(5));
    // One that is stopped: it takes the connection and nothing else.
    std::fs::remove_file(folder.path().join(SOCKET)).unwrap();
    let _silent = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
    let since = Instant::now();
    let large = format!("{{\"x\": \"{}\"}}", "y".repeat(2 * 1024 * 1024));
    assert_eq!(printed(folder.path(), "PermissionRequest", &large), "");
    assert_eq!(printed(folder.path(), "Stop", &asked()), "");
    assert!(since.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_payload_without_end_is_cut_and_read_to_its_end() {
    let mut input = std::io::repeat(b'x').take(MOST_BYTES as u64 + 100_000);
    let line = one_line(&mut input).unwrap();
    assert_eq!(line.len(), MOST_BYTES + 2);
    assert_eq!(input.limit(), 0);
}
