//! The socket that the hooks of one worker speak to.
//!
//! A connection presents the worker's token, then one record. What only tells is closed once the
//! record is in the queue, which is its receipt: so the order of the queue is the CLI's own order. A
//! permission request stays open until it is answered, dropped, out of time, or its hook is gone.
//!
//! What it refuses: another user, another token, a record over the limit (while it is read), a
//! client that is slow or silent. None of them disturbs another connection.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::record::{HookEvent, HookRecord};
use super::{MOST_BYTES, SOCKET, TOKEN};
use crate::error::WorkerError;
use crate::event::Verdict;
use crate::private_dir::PrivateDir;
use crate::timings::Timings;

/// Hooks that may speak at the same time; the others wait to be accepted.
const MOST_CONNECTIONS: usize = 128;
/// The bytes of a token and its line end, and a little.
const MOST_TOKEN: usize = 128;

/// What a hook told, in the order in which it arrived.
#[derive(Debug)]
pub struct HookArrival {
    pub record: HookRecord,
    /// For a permission request only.
    pub reply: Option<HookReply>,
}

/// The held connection of a permission request. Dropping it closes without a word, which leaves the
/// question to the CLI's own dialog.
#[derive(Debug)]
pub struct HookReply {
    verdict: oneshot::Sender<String>,
    closed: CancellationToken,
}

/// Why a verdict was not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// The hook is gone: the CLI has settled the question itself.
    #[error("the question is settled elsewhere")]
    Gone,
    /// The changed input is not JSON.
    #[error("the changed input is not valid JSON")]
    InvalidInput,
}

impl HookReply {
    /// Hands the verdict to the hook. That the CLI acts on it is known only by what follows.
    pub fn answer(self, verdict: &Verdict) -> Result<(), ReplyError> {
        let line = verdict_line(verdict).ok_or(ReplyError::InvalidInput)?;
        if self.closed.is_cancelled() {
            return Err(ReplyError::Gone);
        }
        self.verdict.send(line).map_err(|_| ReplyError::Gone)
    }

    /// Only for tests of what holds one: the reply, what is handed over, and how the hook goes away.
    #[cfg(test)]
    pub(crate) fn held() -> (Self, oneshot::Receiver<String>, CancellationToken) {
        let (verdict, handed_over) = oneshot::channel();
        let closed = CancellationToken::new();
        (Self { verdict, closed: closed.clone() }, handed_over, closed)
    }

    /// Returns when the hook is gone or its time is over: nobody waits for the answer any more.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }
}

/// The one line that the CLI takes as a verdict, without its end. `None` for a changed input that is
/// not JSON.
pub fn verdict_line(verdict: &Verdict) -> Option<String> {
    let decision = match verdict {
        Verdict::Allow { updated_input: None } => serde_json::json!({"behavior": "allow"}),
        Verdict::Allow { updated_input: Some(input) } => {
            let input: serde_json::Value = serde_json::from_str(input).ok()?;
            serde_json::json!({"behavior": "allow", "updatedInput": input})
        }
        Verdict::Deny { message, interrupt: false } => {
            serde_json::json!({"behavior": "deny", "message": message})
        }
        Verdict::Deny { message, interrupt: true } => {
            serde_json::json!({"behavior": "deny", "message": message, "interrupt": true})
        }
    };
    let output = serde_json::json!({
        "hookSpecificOutput": {"hookEventName": super::PERMISSION_REQUEST, "decision": decision}
    });
    Some(output.to_string())
}

/// The listening socket of one worker. Dropping it ends every connection.
#[derive(Debug)]
pub struct HookServer {
    _stop: DropGuard,
}

impl HookServer {
    /// Makes the token and the socket in the worker's private folder and listens. What arrives comes
    /// out of the receiver; an error there is about one connection, which is closed, and about
    /// nothing else. To be called within a tokio runtime.
    pub fn open(
        folder: &PrivateDir,
        timings: &Timings,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Result<HookArrival, WorkerError>>), WorkerError>
    {
        let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        folder.write(TOKEN, token.as_bytes())?;
        let path = folder.path().join(SOCKET);
        let failed = |source: io::Error| WorkerError::File { path: path.clone(), source };
        // Born inside a folder that only we can enter, so nobody can be faster than the mode.
        let listener = UnixListener::bind(&path).map_err(failed)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let (arrivals, receiver) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            token,
            arrivals,
            hand_over: timings.hook,
            permission: timings.permission,
            stop: stop.clone(),
        });
        tokio::spawn(accept(listener, shared));
        Ok((Self { _stop: stop.drop_guard() }, receiver))
    }
}

/// What all connections of a worker need.
struct Shared {
    token: String,
    arrivals: mpsc::UnboundedSender<Result<HookArrival, WorkerError>>,
    /// For a token and a record to arrive.
    hand_over: Duration,
    /// For an answer.
    permission: Duration,
    stop: CancellationToken,
}

async fn accept(listener: UnixListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            Some((listener.accept().await, place))
        };
        let accepted = tokio::select! {
            () = shared.stop.cancelled() => return,
            accepted = accepted => accepted,
        };
        let Some((accepted, place)) = accepted else { return };
        let Ok((socket, _)) = accepted else {
            // Out of descriptors: others must be able to end before the next try.
            tokio::time::sleep(shared.hand_over / 100).await;
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let _place = place;
            let stop = shared.stop.clone();
            tokio::select! {
                () = stop.cancelled() => {}
                () = serve(socket, &shared) => {}
            }
        });
    }
}

/// One connection, from its first byte to its end.
async fn serve(socket: UnixStream, shared: &Shared) {
    let ours = rustix::process::geteuid().as_raw();
    if !socket.peer_cred().is_ok_and(|peer| peer.uid() == ours) {
        return;
    }
    let (read, write) = socket.into_split();
    let mut read = BufReader::new(read);
    let record = tokio::time::timeout(shared.hand_over, receive(&mut read, &shared.token)).await;
    match record {
        // Slow or silent; who it was is not known, so nothing is told.
        Err(_) | Ok(Ok(None)) => {}
        Ok(Err(error)) => {
            let _ = shared.arrivals.send(Err(error));
        }
        Ok(Ok(Some(record))) if matches!(record.event, HookEvent::PermissionRequest { .. }) => {
            hold(record, read, write, shared).await;
        }
        Ok(Ok(Some(record))) => {
            let _ = shared.arrivals.send(Ok(HookArrival { record, reply: None }));
        }
    }
}

/// Reads the token and the record. `None` for whoever does not know the token, and for one that
/// says nothing.
async fn receive(
    read: &mut BufReader<OwnedReadHalf>,
    token: &str,
) -> Result<Option<HookRecord>, WorkerError> {
    let Ok(Line::Whole(presented)) = line(read, MOST_TOKEN).await else { return Ok(None) };
    if !same(&presented, token.as_bytes()) {
        return Ok(None);
    }
    loop {
        let broken = |what: &str| WorkerError::Protocol(what.to_owned());
        match line(read, MOST_BYTES).await {
            Ok(Line::Whole(line)) if line.trim_ascii().is_empty() => {}
            Ok(Line::Whole(line)) => {
                return HookRecord::parse(&line)
                    .map(Some)
                    .map_err(|error| broken(&error.to_string()));
            }
            Ok(Line::Ended { empty: true }) => return Ok(None),
            Ok(Line::Ended { empty: false }) | Err(_) => {
                return Err(broken("a hook ended in the middle of its record"));
            }
            Ok(Line::TooLong(bytes)) => {
                let (bytes, limit) = (bytes as u64, MOST_BYTES as u64);
                return Err(WorkerError::TooLarge { what: "a hook record", bytes, limit });
            }
        }
    }
}

/// What came up to a line end.
enum Line {
    Whole(Vec<u8>),
    Ended {
        empty: bool,
    },
    /// With the number of bytes that had come by then.
    TooLong(usize),
}

/// Reads a line and never keeps more than the limit.
async fn line(read: &mut BufReader<OwnedReadHalf>, limit: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    loop {
        let chunk = read.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(Line::Ended { empty: line.is_empty() });
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(chunk.len());
        if line.len() + taken > limit {
            return Ok(Line::TooLong(line.len() + taken));
        }
        line.extend_from_slice(&chunk[..taken]);
        read.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(Line::Whole(line));
        }
    }
}

/// Compares without telling by its time how much was right.
fn same(presented: &[u8], token: &[u8]) -> bool {
    presented.len() == token.len()
        && presented.iter().zip(token).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// Holds a permission request until it is settled one way or the other.
async fn hold(
    record: HookRecord,
    mut read: BufReader<OwnedReadHalf>,
    mut write: OwnedWriteHalf,
    shared: &Shared,
) {
    let (sender, verdict) = oneshot::channel();
    let closed = CancellationToken::new();
    // However this ends, whoever waits for it learns.
    let _tell = closed.clone().drop_guard();
    let reply = Some(HookReply { verdict: sender, closed: closed.clone() });
    if shared.arrivals.send(Ok(HookArrival { record, reply })).is_err() {
        return;
    }
    let line = tokio::select! {
        // A verdict that is there counts, even if the hook ended at the same time.
        biased;
        verdict = verdict => verdict.ok(),
        () = ended(&mut read) => None,
        () = tokio::time::sleep(shared.permission) => None,
    };
    if let Some(line) = line {
        let line = format!("{line}\n");
        let written = async {
            write.write_all(line.as_bytes()).await?;
            write.shutdown().await
        };
        // A hook that does not take it is given up; the CLI's dialog stands.
        let _ = tokio::time::timeout(shared.hand_over, written).await;
    }
}

/// Returns when the hook goes away, or when it says more than its one line: then it is not ours.
async fn ended(read: &mut BufReader<OwnedReadHalf>) {
    let _ = read.read(&mut [0; 1]).await;
}

#[cfg(test)]
mod tests;
