//! The tap: a pass-through proxy on loopback between the workers and the model's API, for live text.
//!
//! A worker is given [`Tap::base_url`] in place of its API's address. Every request goes on to the
//! real one as it came and its answer comes back as it came, byte for byte; while an answer passes,
//! its events are read and told to whoever [watches](Tap::watch) the session. It is for eyes only: the
//! truth is the transcript, and a worker without a tap is only less lively.
//!
//! It refuses to keep anything: no body and no header is stored, logged, or shown by any Debug or
//! error, for the CLI's credentials pass here. It judges nothing, retries nothing and changes nothing.
//!
//! What the CLI does (2.1.197 and 2.1.332): it takes a base URL with a path and asks for
//! `<base>/v1/messages?beta=true`; the older one begins with a HEAD of `<base>` itself. Each POST names
//! its session in `x-claude-code-session-id` (the new one after `/clear`) and, inside a sub-agent, the
//! agent in `x-claude-code-agent-id`. Both honour `HTTP_PROXY` even for loopback, so a worker needs
//! `NO_PROXY` as well (see [`crate::environment`]).

mod forward;
mod reader;
mod retry;
mod scan;
mod serve;
#[cfg(test)]
mod tests;
mod watch;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::Arc;

use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::environment::variable;
use crate::fact::Fact;
use forward::Upstream;
use watch::Watchers;

/// Where requests go when nobody configured another address.
const VENDOR: &str = "https://api.anthropic.com";

/// Why there is no tap. Workers run without one.
#[derive(Debug, Error)]
pub enum TapError {
    /// The address itself is not repeated: it may hold a password.
    #[error(
        "the API's address is not an http(s) address, like https://host; correct ANTHROPIC_BASE_URL, or set workers.tap to false"
    )]
    Upstream,
    #[error("no port on 127.0.0.1 could be opened for live text: {0}")]
    Listen(#[from] std::io::Error),
}

/// What passes through the tap for one session, in order per request. Several requests of a session
/// may be under way at once (sub-agents).
#[derive(Debug, Clone, PartialEq)]
pub enum Tapped {
    /// A request for an answer of the model came in. `agent` is the sub-agent that asks.
    RequestBegan { agent: Option<String> },
    /// A live fact of an answer: of the conversation and its sub-agents only, not of what the CLI asks
    /// the model on the side (the older one asks for a title).
    Fact { agent: Option<String>, fact: Box<Fact> },
    /// The answer is over, for whatever reason. `status` is the HTTP status; none when there was no
    /// answer. Comes once for each that began.
    RequestEnded { agent: Option<String>, status: Option<u16> },
}

/// The running proxy. Dropping it closes the port and every connection.
pub struct Tap {
    base_url: String,
    watchers: Arc<Watchers>,
    _stop: DropGuard,
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address holds the secret.
        f.write_str("Tap(..)")
    }
}

impl Tap {
    /// Listens on a free port of 127.0.0.1 and forwards to `upstream`, e.g. `https://host` or
    /// `http://127.0.0.1:8080/base`. Call it inside a tokio runtime; it serves until it is dropped.
    pub fn start(upstream: &str) -> Result<Self, TapError> {
        let upstream = Upstream::new(upstream).ok_or(TapError::Upstream)?;
        let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let secret = uuid::Uuid::new_v4().simple().to_string();
        let base_url = format!("http://{address}/{secret}");
        let watchers = Arc::new(Watchers::default());
        let stop = CancellationToken::new();
        let tapped = forward::Tapping { upstream, secret, watchers: Arc::clone(&watchers) };
        tokio::spawn(serve::serve(listener, Arc::new(tapped), stop.clone()));
        Ok(Self { base_url, watchers, _stop: stop.drop_guard() })
    }

    /// What a worker is given as `ANTHROPIC_BASE_URL`: `http://127.0.0.1:<port>/<secret>`. Whoever knows
    /// it can send requests through us; it is as secret as a worker's environment.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Tells what passes for this session from the next request on. Drop the receiver to end it. There
    /// may be several for one session.
    pub fn watch(&self, session_id: &str) -> mpsc::UnboundedReceiver<Tapped> {
        self.watchers.add(session_id)
    }

    /// The address that this environment names for the API, or the vendor's.
    pub fn upstream_of(environment: &[(OsString, OsString)]) -> String {
        let named = variable(environment, "ANTHROPIC_BASE_URL").and_then(OsStr::to_str);
        let named = named.map(str::trim).filter(|url| !url.is_empty());
        named.unwrap_or(VENDOR).to_owned()
    }
}
