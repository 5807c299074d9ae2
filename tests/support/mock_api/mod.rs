//! A mock model server on a real socket: the Messages API and chat completions, scripted.
//!
//! It runs on its own thread, so synchronous tests (a program in a pty) can use it as well as async
//! ones. It plays exactly what a script says, byte by byte if wanted, and records what it was sent.
//! It refuses to be clever: it validates nothing and has no timing of its own. Where a test wants a
//! pause, the script waits at a [`Gate`] that the test opens; there are no sleeps.
//!
//! ```no_run
//! use claw_tests::mock_api::{ChatStream, Gate, MessagesStream, MockApi, Reply};
//!
//! let api = MockApi::start();
//! let gate = Gate::new();
//! // Replies are used in order. Each stream builder ends in `.reply()`.
//! api.push(
//!     MessagesStream::new()
//!         .usage_start(100, 0, 0)
//!         .text(&["Hel", "lo"])
//!         .wait(&gate) // streams nothing more until `gate.release()`
//!         .tool_use("toolu_1", "bash", r#"{"command":"ls"}"#)
//!         .stop("tool_use", 12)
//!         .reply(),
//! );
//! api.push(Reply::error(529, "overloaded_error", "Overloaded").header("retry-after", "1"));
//! // Or choose by looking at the request; `None` falls through to the queue.
//! api.answer(|request| request.last_user_text().contains("hi").then(|| MessagesStream::say("hello")));
//!
//! // ANTHROPIC_BASE_URL = api.base_url(), OPENAI_BASE_URL = format!("{}/v1", api.base_url())
//! api.wait_for_requests(1);
//! gate.wait_reached(1); // everything before the gate is on the wire
//! gate.release();
//! assert_eq!(api.requests()[0].body["stream"], true);
//! ```
//!
//! Ends of a reply: by default the body ends cleanly; [`Reply::cut_after`], [`Reply::close`],
//! [`Reply::reset`] and [`Reply::stall`] break it off. [`Reply::split_every`] cuts the body into
//! chunks of that many bytes. When a reply is asked for and none is scripted the server answers 400
//! with an explanation, so that a test fails at once and says why.

#![expect(clippy::expect_used, reason = "support code fails the test that uses it by panicking")]

mod chat;
mod gate;
mod messages;
mod reply;
mod server;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub use chat::ChatStream;
pub use gate::Gate;
pub use messages::MessagesStream;
pub use reply::Reply;
use server::Shared;

/// How long a wait of a test may take before it panics. Generous: it only catches hangs.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A request as it came over the wire.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub method: String,
    pub path: String,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The JSON body; `Null` when there was none or it was not JSON.
    pub body: Value,
    /// Which connection carried it, counted from 1.
    pub connection: usize,
}

impl RecordedRequest {
    /// The first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All text of the last message with role `user`, joined; empty if there is none.
    pub fn last_user_text(&self) -> String {
        let messages = self.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(message) = messages.iter().rev().find(|message| message["role"] == "user") else {
            return String::new();
        };
        match &message["content"] {
            Value::String(text) => text.clone(),
            Value::Array(blocks) => {
                blocks.iter().filter_map(|block| block["text"].as_str()).collect()
            }
            _ => String::new(),
        }
    }
}

/// The server. Dropping it stops the thread and closes every connection.
pub struct MockApi {
    shared: Arc<Shared>,
    base_url: String,
}

impl MockApi {
    /// Starts a server on a free loopback port.
    pub fn start() -> Self {
        let (shared, address) = server::start();
        Self { shared, base_url: format!("http://{address}") }
    }

    /// `http://127.0.0.1:<port>`, without a trailing slash.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Adds a reply to the queue.
    pub fn push(&self, reply: Reply) {
        self.shared.state().replies.push_back(reply);
    }

    /// Lets `choose` look at each request first; where it gives none, the queue is used.
    pub fn answer(&self, choose: impl FnMut(&RecordedRequest) -> Option<Reply> + Send + 'static) {
        self.shared.state().choose = Some(Box::new(choose));
    }

    /// Every request so far, in order of arrival.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.state().requests.clone()
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// How many replies the client hung up on before they were finished.
    pub fn hang_ups(&self) -> usize {
        self.shared.state().hang_ups
    }

    /// Blocks until `count` requests have come in. Panics after [`PATIENCE`].
    pub fn wait_for_requests(&self, count: usize) {
        self.shared.wait("requests", |state| state.requests.len() >= count);
    }

    /// Blocks until the client has hung up on `count` replies. Panics after [`PATIENCE`].
    pub fn wait_for_hang_ups(&self, count: usize) {
        self.shared.wait("hang-ups", |state| state.hang_ups >= count);
    }
}

impl Drop for MockApi {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}
