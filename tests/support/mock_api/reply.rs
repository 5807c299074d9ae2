//! One scripted reply: a status, headers, and the steps of its body.

use serde_json::json;

use super::Gate;

/// What the server does next with the body.
#[derive(Clone)]
pub(super) enum Step {
    /// Sends these bytes as one chunk, flushed.
    Bytes(Vec<u8>),
    /// Waits for the test.
    Wait(Gate),
}

/// How the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The body ends as HTTP says.
    Clean,
    /// The socket closes in the middle of the body.
    Close,
    /// The connection is reset.
    Reset,
    /// Nothing more comes; the connection stays open until the client hangs up.
    Stall,
}

/// A reply to one request.
#[derive(Clone)]
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) steps: Vec<Step>,
    pub(super) end: End,
    /// Waited for before the status line is sent.
    pub(super) before_head: Option<Gate>,
    /// The connection is dropped without any answer.
    pub(super) hang_up: bool,
}

impl Reply {
    /// A 200 with `text/event-stream` and no body yet.
    pub fn stream() -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            steps: Vec::new(),
            end: End::Clean,
            before_head: None,
            hang_up: false,
        }
    }

    /// A whole body of this status and content type.
    pub fn body(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            steps: vec![Step::Bytes(body.into())],
            ..Self::stream()
        }
    }

    /// An error in the form of the Messages API.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        Self::body(status, "application/json", body.to_string())
    }

    /// An error in the form of chat completions.
    pub fn chat_error(status: u16, code: &str, message: &str) -> Self {
        let body = json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": code}});
        Self::body(status, "application/json", body.to_string())
    }

    /// Accepts the request and closes the connection without an answer.
    pub fn no_answer() -> Self {
        Self { hang_up: true, ..Self::stream() }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Waits at this gate before the status line is sent: a slow first byte.
    #[must_use]
    pub fn wait_before_head(mut self, gate: &Gate) -> Self {
        self.before_head = Some(gate.clone());
        self
    }

    /// Adds bytes to the body.
    #[must_use]
    pub fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.steps.push(Step::Bytes(bytes.into()));
        self
    }

    /// Adds one server-sent event to the body.
    #[must_use]
    pub fn event(self, name: &str, data: &str) -> Self {
        self.bytes(format!("event: {name}\ndata: {data}\n\n"))
    }

    /// Waits at this gate.
    #[must_use]
    pub fn wait(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Wait(gate.clone()));
        self
    }

    /// Ends by closing the socket in the middle of the body.
    #[must_use]
    pub fn close(mut self) -> Self {
        self.end = End::Close;
        self
    }

    /// Ends by resetting the connection.
    #[must_use]
    pub fn reset(mut self) -> Self {
        self.end = End::Reset;
        self
    }

    /// Ends by falling silent with the connection open.
    #[must_use]
    pub fn stall(mut self) -> Self {
        self.end = End::Stall;
        self
    }

    /// Keeps the first `count` bytes of the body, then closes the socket.
    #[must_use]
    pub fn cut_after(mut self, count: usize) -> Self {
        let mut left = count;
        let mut steps = Vec::new();
        for step in self.steps {
            match step {
                Step::Bytes(mut bytes) => {
                    bytes.truncate(left);
                    left -= bytes.len();
                    steps.push(Step::Bytes(bytes));
                }
                Step::Wait(gate) if left > 0 => steps.push(Step::Wait(gate)),
                Step::Wait(_) => {}
            }
        }
        self.steps = steps;
        self.close()
    }

    /// Sends the body in chunks of at most `size` bytes, each flushed on its own.
    #[must_use]
    pub fn split_every(self, size: usize) -> Self {
        self.split_at(&[], size)
    }

    /// Sends the body cut at these offsets (ascending) and, past the last one, every `then` bytes.
    #[must_use]
    pub fn split_at(mut self, offsets: &[usize], then: usize) -> Self {
        let mut offset = 0;
        let mut steps = Vec::new();
        for step in self.steps {
            let Step::Bytes(mut bytes) = step else {
                steps.push(step);
                continue;
            };
            while !bytes.is_empty() {
                let next = offsets.iter().find(|cut| **cut > offset).map(|cut| cut - offset);
                let rest = bytes.split_off(next.unwrap_or(then.max(1)).min(bytes.len()));
                offset += bytes.len();
                steps.push(Step::Bytes(std::mem::replace(&mut bytes, rest)));
            }
        }
        self.steps = steps;
        self
    }

    /// The whole body as bytes, gates left out.
    pub fn body_bytes(&self) -> Vec<u8> {
        let chunks = self.steps.iter().filter_map(|step| match step {
            Step::Bytes(bytes) => Some(bytes.as_slice()),
            Step::Wait(_) => None,
        });
        chunks.flatten().copied().collect()
    }
}
