//! The pool on a Unix socket: JSON lines, one request or answer each.
//!
//! A request is `{"id": ..., "ask": {...}}` or `{"id": ..., "status": {}}`; its answer has the same id
//! and `reply`, `status` or `error` (`name`, `message`). Several may be under way on one connection;
//! whoever hangs up cancels their own.
//!
//! What it refuses: another user, a second daemon in the same place, a place where something else lies,
//! lines over the limit, more connections than it has room for.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::error::PoolError;
use super::{Ask, PoolStatus, Reply, WorkerPool};
use crate::private_dir;

/// Name of the socket in the folder of private files.
pub const SOCKET: &str = "pool.sock";
/// Bytes of a request.
const LONGEST_LINE: usize = 4 * 1024 * 1024;
/// Connections at the same time.
const MOST_CONNECTIONS: usize = 64;
/// Requests of one connection at the same time.
const MOST_REQUESTS: usize = 64;
/// For an answer to be taken by a client that reads slowly.
const TAKING: Duration = Duration::from_secs(10);

/// Why there is no daemon here, or no answer of one.
#[derive(Debug, Error)]
pub enum DaemonError {
    #[error("a pool runs at {} already", .0.display())]
    Taken(PathBuf),
    #[error("{} is not a socket; it is left as it is", .0.display())]
    NotASocket(PathBuf),
    #[error("no pool runs at {}; start one with `claw pool serve`", .0.display())]
    NotRunning(PathBuf),
    #[error("the pool at {} belongs to another user", .0.display())]
    OtherUser(PathBuf),
    #[error("{path}: {source}", path = .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{message}")]
    Refused { name: String, message: String },
    #[error("the pool answered with something that is no answer: {0}")]
    Protocol(String),
    #[error(transparent)]
    Private(#[from] crate::error::WorkerError),
}

impl DaemonError {
    /// The stable name of its kind; that of the pool where it is the pool's.
    pub fn name(&self) -> &str {
        match self {
            Self::Taken(_) => "already_running",
            Self::NotASocket(_) => "not_a_socket",
            Self::NotRunning(_) => "not_running",
            Self::OtherUser(_) => "other_user",
            Self::Io { .. } => "io",
            Self::Refused { name, .. } => name,
            Self::Protocol(_) => "protocol",
            Self::Private(_) => "file",
        }
    }
}

#[derive(Debug, Deserialize)]
struct Request {
    #[serde(default)]
    id: Value,
    #[serde(flatten)]
    order: Order,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    Ask(Ask),
    Status(Nothing),
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Debug, Serialize, Deserialize)]
struct Response {
    #[serde(default)]
    id: Value,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Reply(Reply),
    Status(PoolStatus),
    Error { name: String, message: String },
}

impl Outcome {
    fn error(name: &str, message: impl Into<String>) -> Self {
        Self::Error { name: name.to_owned(), message: message.into() }
    }
}

/// The listening socket, ours alone from its first moment.
#[derive(Debug)]
pub struct PoolServer {
    listener: UnixListener,
    path: PathBuf,
    /// Held for as long as this is the daemon of this place.
    _lock: File,
}

impl PoolServer {
    /// Listens at this path, whose folder must be ours alone. A socket that nobody listens at any more
    /// is replaced. To be called within a tokio runtime.
    pub fn bind(path: &Path) -> Result<Self, DaemonError> {
        let failed = |source| DaemonError::Io { path: path.to_owned(), source };
        let folder = path.parent().unwrap_or(Path::new("/"));
        private_dir::check_private(folder)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.with_extension("lock"))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DaemonError::Taken(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        match path.symlink_metadata() {
            Ok(found) if found.file_type().is_socket() => {}
            Ok(_) => return Err(DaemonError::NotASocket(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        // Made under another name, so that it never has this one with another mode.
        let fresh = path.with_extension("new");
        let _ = std::fs::remove_file(&fresh);
        let listener = UnixListener::bind(&fresh).map_err(failed)?;
        std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        std::fs::rename(&fresh, path).map_err(failed)?;
        Ok(Self { listener, path: path.to_owned(), _lock: lock })
    }

    /// Answers until it is told to stop, then closes the pool. True when nothing of it is left.
    pub async fn serve(self, pool: WorkerPool, stop: CancellationToken) -> bool {
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
                Some(_ended) = connections.join_next(), if !connections.is_empty() => continue,
            };
            let Ok((socket, _)) = accepted else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            if !is_ours(&socket) {
                continue;
            }
            match Arc::clone(&places).try_acquire_owned() {
                Ok(place) => {
                    let pool = pool.clone();
                    connections.spawn(async move {
                        let _place = place;
                        converse(socket, pool).await;
                    });
                }
                Err(_) => {
                    connections.spawn(refuse(socket));
                }
            }
        }
        let left_nothing = pool.close().await;
        // What was answered meanwhile is on its way.
        let _ = tokio::time::timeout(Duration::from_millis(200), async {
            while connections.join_next().await.is_some() {}
        })
        .await;
        left_nothing
    }
}

impl Drop for PoolServer {
    fn drop(&mut self) {
        // The lock stays: whoever waits for it holds the same file.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn is_ours(socket: &UnixStream) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    socket.peer_cred().is_ok_and(|peer| peer.uid() == ours)
}

async fn refuse(socket: UnixStream) {
    let (_, mut write) = socket.into_split();
    let message = format!("{MOST_CONNECTIONS} connections are open already");
    let outcome = Outcome::error("too_many_connections", message);
    answer(&mut write, Value::Null, outcome).await;
}

/// One connection: its requests are carried out side by side and cancelled when it ends.
async fn converse(socket: UnixStream, pool: WorkerPool) {
    let (read, write) = socket.into_split();
    let write = Arc::new(Mutex::new(write));
    let mut read = BufReader::new(read);
    let mut running = JoinSet::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = (&mut read).take(LONGEST_LINE as u64 + 1);
        let got = limited.read_until(b'\n', &mut line).await;
        while running.try_join_next().is_some() {}
        match got {
            Ok(0) | Err(_) => return,
            Ok(_) if line.len() > LONGEST_LINE => {
                let message = format!("a request may have {LONGEST_LINE} bytes");
                let outcome = Outcome::error("line_too_long", message);
                return answer(&mut *write.lock().await, Value::Null, outcome).await;
            }
            Ok(_) => {}
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Request { id, order } = match serde_json::from_slice(&line) {
            Ok(request) => request,
            Err(error) => {
                let outcome = Outcome::error("bad_request", error.to_string());
                answer(&mut *write.lock().await, Value::Null, outcome).await;
                continue;
            }
        };
        if running.len() >= MOST_REQUESTS {
            let message = format!("{MOST_REQUESTS} requests of this connection are under way");
            answer(&mut *write.lock().await, id, Outcome::error("busy", message)).await;
            continue;
        }
        let (pool, write) = (pool.clone(), Arc::clone(&write));
        running.spawn(async move {
            let outcome = carry_out(&pool, order).await;
            answer(&mut *write.lock().await, id, outcome).await;
        });
    }
}

async fn carry_out(pool: &WorkerPool, order: Order) -> Outcome {
    match order {
        Order::Status(_) => Outcome::Status(pool.status()),
        Order::Ask(ask) => match pool.ask(ask).await {
            Ok(reply) => Outcome::Reply(reply),
            Err(error) => Outcome::error(error.name(), error.to_string()),
        },
    }
}

async fn answer(write: &mut OwnedWriteHalf, id: Value, outcome: Outcome) {
    let Ok(mut line) = serde_json::to_vec(&Response { id, outcome }) else { return };
    line.push(b'\n');
    // A client that does not read has given its answer up.
    let _ = tokio::time::timeout(TAKING, write.write_all(&line)).await;
}

/// A connection to the daemon.
pub struct PoolClient {
    stream: BufReader<UnixStream>,
    path: PathBuf,
}

impl PoolClient {
    pub async fn connect(path: &Path) -> Result<Self, DaemonError> {
        let stream = UnixStream::connect(path).await.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                DaemonError::NotRunning(path.to_owned())
            }
            _ => DaemonError::Io { path: path.to_owned(), source },
        })?;
        if !is_ours(&stream) {
            return Err(DaemonError::OtherUser(path.to_owned()));
        }
        Ok(Self { stream: BufReader::new(stream), path: path.to_owned() })
    }

    /// Asks and waits. Dropping this hangs up, which cancels the ask.
    pub async fn ask(&mut self, ask: Ask) -> Result<Reply, DaemonError> {
        match self.request(Order::Ask(ask)).await? {
            Outcome::Reply(reply) => Ok(reply),
            other => Err(unexpected(other)),
        }
    }

    pub async fn status(&mut self) -> Result<PoolStatus, DaemonError> {
        match self.request(Order::Status(Nothing {})).await? {
            Outcome::Status(status) => Ok(status),
            other => Err(unexpected(other)),
        }
    }

    async fn request(&mut self, order: Order) -> Result<Outcome, DaemonError> {
        let failed = |path: &Path, source| DaemonError::Io { path: path.to_owned(), source };
        let mut line =
            serde_json::to_vec(&order).map_err(|error| DaemonError::Protocol(error.to_string()))?;
        line.push(b'\n');
        self.stream.write_all(&line).await.map_err(|error| failed(&self.path, error))?;
        let mut answer = Vec::new();
        let read = self.stream.read_until(b'\n', &mut answer).await;
        if read.map_err(|error| failed(&self.path, error))? == 0 {
            return Err(DaemonError::NotRunning(self.path.clone()));
        }
        let response: Response = serde_json::from_slice(&answer)
            .map_err(|error| DaemonError::Protocol(error.to_string()))?;
        Ok(response.outcome)
    }
}

fn unexpected(outcome: Outcome) -> DaemonError {
    match outcome {
        Outcome::Error { name, message } => DaemonError::Refused { name, message },
        other => DaemonError::Protocol(format!("{other:?}")),
    }
}

/// The status with which the program ends for an error of this name.
pub fn exit_code(name: &str) -> u8 {
    match name {
        "not_running" | "already_running" | "not_a_socket" | "other_user" => 11,
        name => PoolError::exit_code_of(name),
    }
}
