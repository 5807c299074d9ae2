//! The sockets: a small HTTP/1.1 server that plays replies.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::reply::{End, Step};
use super::{PATIENCE, RecordedRequest, Reply};

type Chooser = Box<dyn FnMut(&RecordedRequest) -> Option<Reply> + Send>;

#[derive(Default)]
pub(super) struct State {
    pub replies: VecDeque<Reply>,
    pub choose: Option<Chooser>,
    pub requests: Vec<RecordedRequest>,
    pub connections: usize,
    pub hang_ups: usize,
}

#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    pub stop: CancellationToken,
}

impl Shared {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the waiting tests.
    fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state());
        self.changed.notify_all();
        result
    }

    pub fn wait(&self, what: &str, done: impl Fn(&State) -> bool) {
        let (state, timeout) = self
            .changed
            .wait_timeout_while(self.state(), PATIENCE, |state| !done(state))
            .unwrap_or_else(PoisonError::into_inner);
        let (requests, hang_ups) = (state.requests.len(), state.hang_ups);
        drop(state);
        assert!(
            !timeout.timed_out(),
            "waited in vain for {what}: {requests} requests and {hang_ups} hang-ups so far"
        );
    }

    /// Records the request and picks its reply.
    fn pick(&self, request: RecordedRequest) -> Reply {
        self.update(|state| {
            let chosen = state.choose.as_mut().and_then(|choose| choose(&request));
            let number = state.requests.len() + 1;
            let line = format!("{} {}", request.method, request.path);
            state.requests.push(request);
            chosen.or_else(|| state.replies.pop_front()).unwrap_or_else(|| {
                let message = format!("mock: no reply is scripted for request {number}, {line}");
                Reply::error(400, "invalid_request_error", &message)
            })
        })
    }
}

/// Binds, then serves on a thread of its own until `stop`.
pub(super) fn start() -> (Arc<Shared>, SocketAddr) {
    let shared = Arc::new(Shared::default());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
    let address = listener.local_addr().expect("a bound address");
    listener.set_nonblocking(true).expect("a non-blocking listener");
    let served = Arc::clone(&shared);
    std::thread::Builder::new()
        .name("mock-api".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a tokio runtime");
            runtime.block_on(serve(&served, listener));
        })
        .expect("a thread");
    (shared, address)
}

async fn serve(shared: &Arc<Shared>, listener: std::net::TcpListener) {
    let listener = TcpListener::from_std(listener).expect("a tokio listener");
    loop {
        let accepted = tokio::select! {
            () = shared.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((socket, _)) = accepted else { continue };
        let number = shared.update(|state| {
            state.connections += 1;
            state.connections
        });
        let shared = Arc::clone(shared);
        tokio::spawn(async move { connection(&shared, socket, number).await });
    }
}

/// Serves one connection until it closes. A failing socket is the client's business.
async fn connection(shared: &Shared, socket: TcpStream, number: usize) {
    let _ = socket.set_nodelay(true);
    let (mut reader, mut writer) = socket.into_split();
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut reader, &mut buffer, number).await {
        let head_only = request.method == "HEAD";
        let reply = shared.pick(request);
        if reply.hang_up {
            return;
        }
        // While the reply is played, the only thing that can come is the end of the client.
        let end = reply.end;
        let played = tokio::select! {
            played = play(&reply, &mut writer, head_only) => played.is_ok(),
            () = hung_up(&mut reader) => false,
        };
        if !played {
            shared.update(|state| state.hang_ups += 1);
            return;
        }
        match end {
            End::Clean => {}
            End::Close | End::Stall => return,
            End::Reset => {
                if let Ok(socket) = reader.reunite(writer) {
                    let _ = socket.set_zero_linger();
                }
                return;
            }
        }
    }
}

/// Resolves when the client closes its side.
async fn hung_up(reader: &mut OwnedReadHalf) {
    let mut scratch = [0_u8; 256];
    while matches!(reader.read(&mut scratch).await, Ok(count) if count > 0) {}
}

async fn play(reply: &Reply, writer: &mut OwnedWriteHalf, head_only: bool) -> std::io::Result<()> {
    if let Some(gate) = &reply.before_head {
        gate.pass().await;
    }
    let mut head = format!("HTTP/1.1 {} Mock\r\ntransfer-encoding: chunked\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    writer.write_all(head.as_bytes()).await?;
    if head_only {
        return Ok(());
    }
    for step in &reply.steps {
        match step {
            Step::Bytes(bytes) if bytes.is_empty() => {}
            Step::Bytes(bytes) => {
                let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                chunk.extend_from_slice(bytes);
                chunk.extend_from_slice(b"\r\n");
                writer.write_all(&chunk).await?;
            }
            Step::Wait(gate) => gate.pass().await,
        }
    }
    match reply.end {
        End::Clean => writer.write_all(b"0\r\n\r\n").await,
        End::Stall => std::future::pending().await,
        End::Close | End::Reset => Ok(()),
    }
}

/// Reads one request; none when the client has closed or does not speak HTTP.
async fn read_request(
    reader: &mut OwnedReadHalf,
    buffer: &mut Vec<u8>,
    connection: usize,
) -> Option<RecordedRequest> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if reader.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse::<usize>().ok()).unwrap_or(0);
    let body_start = head_end + 4;
    while buffer.len() < body_start + length {
        if reader.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let rest = buffer.split_off(body_start + length);
    let body = serde_json::from_slice(&buffer[body_start..]).unwrap_or(Value::Null);
    *buffer = rest;
    Some(RecordedRequest { method, path, headers, body, connection })
}
