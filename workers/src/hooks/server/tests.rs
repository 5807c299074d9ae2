use std::io::{Read, Write};
use std::os::unix::net::UnixStream as Socket;

use super::*;
use crate::testing::{fixture, private_root};

type Arrivals = mpsc::UnboundedReceiver<Result<HookArrival, WorkerError>>;

struct Fixture {
    _root: tempfile::TempDir,
    folder: PrivateDir,
    server: HookServer,
    arrivals: Arrivals,
}

fn open(timings: &Timings) -> Fixture {
    let root = private_root();
    let folder = PrivateDir::create(root.path()).unwrap();
    let (server, arrivals) = HookServer::open(&folder, timings).unwrap();
    Fixture { _root: root, folder, server, arrivals }
}

impl Fixture {
    fn connect(&self) -> Socket {
        Socket::connect(self.folder.path().join(SOCKET)).unwrap()
    }

    /// A connection that has presented its token.
    fn known(&self) -> Socket {
        let mut socket = self.connect();
        let token = std::fs::read(self.folder.path().join(TOKEN)).unwrap();
        socket.write_all(&[&token[..], b"\n"].concat()).unwrap();
        socket
    }

    async fn next(&mut self) -> Result<HookArrival, WorkerError> {
        let next = tokio::time::timeout(Duration::from_secs(20), self.arrivals.recv());
        next.await.expect("something arrives").expect("the server lives")
    }
}

fn stop(text: &str) -> String {
    format!(
        "{{\"session_id\":\"s\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt\":\"{text}\"}}\n"
    )
}

fn prompt(arrival: &HookArrival) -> &str {
    let HookEvent::UserPromptSubmit { prompt } = &arrival.record.event else { panic!() };
    prompt
}

fn asked() -> String {
    let payload = fixture("hooks/2.1.332/PermissionRequest-Bash.json");
    payload.replace('\n', " ") + "\n"
}

/// What the server sends until it closes.
async fn rest(mut socket: Socket) -> String {
    let read = tokio::task::spawn_blocking(move || {
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        text
    });
    read.await.unwrap()
}

#[tokio::test]
async fn socket_and_token_are_for_us_alone() {
    let fixture = open(&Timings::brisk());
    for name in [SOCKET, TOKEN] {
        let found = fixture.folder.path().join(name).metadata().unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
    }
    let token = std::fs::read_to_string(fixture.folder.path().join(TOKEN)).unwrap();
    assert_eq!(token.len(), 64);
    assert!(!format!("{:?}", fixture.server).contains(&token));
}

#[tokio::test]
async fn halves_empty_lines_junk_and_large_records_are_handled() {
    let mut fixture = open(&Timings::brisk());
    // In two halves, the first of them ending in the middle of a letter, after empty lines.
    let mut socket = fixture.known();
    let line = stop("grüße");
    let cut = line.find('ü').unwrap() + 1;
    socket.write_all(b"\n  \n").unwrap();
    socket.write_all(&line.as_bytes()[..cut]).unwrap();
    tokio::task::yield_now().await;
    socket.write_all(&line.as_bytes()[cut..]).unwrap();
    assert_eq!(prompt(&fixture.next().await.unwrap()), "grüße");
    assert_eq!(rest(socket).await, "", "the end is the receipt");
    for junk in ["junk\n", "{\"session_id\": 1}\n", "{\"half\": "] {
        let mut socket = fixture.known();
        socket.write_all(junk.as_bytes()).unwrap();
        drop(socket);
        assert!(matches!(fixture.next().await, Err(WorkerError::Protocol(_))), "{junk}");
    }
    let large = "x".repeat(5 * 1024 * 1024);
    let mut socket = fixture.known();
    let line = stop(&large);
    std::thread::spawn(move || socket.write_all(line.as_bytes()).unwrap());
    assert_eq!(prompt(&fixture.next().await.unwrap()).len(), large.len());
}

#[tokio::test]
async fn a_record_over_the_limit_fails_by_name_before_it_has_come_to_its_end() {
    let mut fixture = open(&Timings::brisk());
    let mut socket = fixture.known();
    // No line end is ever sent: the limit holds while it is read.
    let writer = std::thread::spawn(move || {
        let piece = vec![b'x'; 1024 * 1024];
        (0..64).take_while(|_| socket.write_all(&piece).is_ok()).count()
    });
    let error = fixture.next().await.unwrap_err();
    assert!(matches!(error, WorkerError::TooLarge { what: "a hook record", .. }), "{error}");
    assert!(writer.join().unwrap() < 64, "the connection is closed");
}

#[tokio::test]
async fn without_the_token_nothing_is_told_and_nobody_else_is_disturbed() {
    let mut fixture = open(&Timings { hook: Duration::from_millis(300), ..Timings::brisk() });
    let silent = fixture.connect();
    for wrong in
        [String::new(), "wrong\n".to_owned(), "x".repeat(100_000), "GET / HTTP/1.1\n".to_owned()]
    {
        let mut socket = fixture.connect();
        // It may be closed before all of it is written.
        let _ = socket.write_all((wrong + &stop("forged")).as_bytes());
    }
    let mut slow = fixture.known();
    slow.write_all(b"{\"session_id\":").unwrap();
    let mut honest = fixture.known();
    honest.write_all(stop("honest").as_bytes()).unwrap();
    assert_eq!(prompt(&fixture.next().await.unwrap()), "honest");
    // Those who say nothing, or not all, are closed without a word.
    assert_eq!((rest(silent).await, rest(slow).await), (String::new(), String::new()));
    assert!(fixture.arrivals.try_recv().is_err());
}

#[tokio::test]
async fn records_arrive_in_the_order_of_their_receipts() {
    let mut fixture = open(&Timings::brisk());
    for n in 0..50 {
        let mut socket = fixture.known();
        socket.write_all(stop(&n.to_string()).as_bytes()).unwrap();
        assert_eq!(rest(socket).await, "");
    }
    for n in 0..50 {
        assert_eq!(prompt(&fixture.next().await.unwrap()), n.to_string());
    }
}

#[tokio::test]
async fn a_verdict_reaches_the_hook_exactly_as_the_cli_takes_it() {
    let changed = r#"{"command": "touch changed-by-hook.txt", "description": "Changed"}"#;
    let deny = |message: &str, interrupt| Verdict::Deny { message: message.to_owned(), interrupt };
    let table = [
        ("allow", Verdict::Allow { updated_input: None }),
        ("allow-updated-input", Verdict::Allow { updated_input: Some(changed.to_owned()) }),
        ("deny", deny("denied because of policy", false)),
        ("deny-interrupt", deny("denied and stop", true)),
    ];
    let mut fixture = open(&Timings::brisk());
    for (name, verdict) in table {
        let mut socket = fixture.known();
        socket.write_all(asked().as_bytes()).unwrap();
        let arrival = fixture.next().await.unwrap();
        arrival.reply.unwrap().answer(&verdict).unwrap();
        let line = rest(socket).await;
        assert!(line.ends_with("}\n") && line.lines().count() == 1);
        let expected: serde_json::Value =
            serde_json::from_str(&crate::testing::fixture(&format!("verdicts/{name}.json")))
                .unwrap();
        assert_eq!(line.trim_end(), expected.to_string(), "{name}");
    }
}

#[tokio::test]
async fn without_a_verdict_the_hook_hears_nothing() {
    let mut fixture = open(&Timings { permission: Duration::from_millis(200), ..Timings::brisk() });
    // Dropped.
    let mut socket = fixture.known();
    socket.write_all(asked().as_bytes()).unwrap();
    drop(fixture.next().await.unwrap().reply);
    assert_eq!(rest(socket).await, "");
    // A changed input that is no JSON.
    let mut socket = fixture.known();
    socket.write_all(asked().as_bytes()).unwrap();
    let reply = fixture.next().await.unwrap().reply.unwrap();
    let broken = Verdict::Allow { updated_input: Some("{".to_owned()) };
    assert_eq!(reply.answer(&broken), Err(ReplyError::InvalidInput));
    assert_eq!(rest(socket).await, "");
    // Out of time.
    let mut socket = fixture.known();
    socket.write_all(asked().as_bytes()).unwrap();
    let reply = fixture.next().await.unwrap().reply.unwrap();
    reply.closed().await;
    assert_eq!(reply.answer(&Verdict::Allow { updated_input: None }), Err(ReplyError::Gone));
    assert_eq!(rest(socket).await, "");
}

#[tokio::test]
async fn the_end_of_a_hook_is_told_and_a_late_verdict_is_gone() {
    // Gone, half closed, or saying more than a hook says.
    let ends: [fn(Socket) -> Option<Socket>; 3] = [
        |_| None,
        |socket| {
            socket.shutdown(std::net::Shutdown::Write).unwrap();
            Some(socket)
        },
        |mut socket| {
            socket.write_all(asked().as_bytes()).unwrap();
            Some(socket)
        },
    ];
    for end in ends {
        let mut fixture = open(&Timings::brisk());
        let mut socket = fixture.known();
        socket.write_all(asked().as_bytes()).unwrap();
        let reply = fixture.next().await.unwrap().reply.unwrap();
        let _kept = end(socket);
        tokio::time::timeout(Duration::from_secs(20), reply.closed()).await.unwrap();
        let late = reply.answer(&Verdict::Allow { updated_input: None });
        assert_eq!(late, Err(ReplyError::Gone));
        assert!(fixture.arrivals.try_recv().is_err(), "it asked once");
    }
}

#[tokio::test]
async fn the_end_of_the_server_ends_every_hook() {
    let mut fixture = open(&Timings::brisk());
    let mut socket = fixture.known();
    socket.write_all(asked().as_bytes()).unwrap();
    let reply = fixture.next().await.unwrap().reply;
    drop(fixture.server);
    assert_eq!(rest(socket).await, "");
    reply.unwrap().closed().await;
    assert!(fixture.arrivals.recv().await.is_none());
}
