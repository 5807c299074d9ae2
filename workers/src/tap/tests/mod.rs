//! The proxy over real sockets: an upstream that does what a test says, step by step, and clients.

mod facts;
mod passing;
mod refusing;

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use claw_runtime::api::transport::client_builder;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Tap, Tapped};
use crate::fact::Fact;

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Catches hangs and nothing else.
const PATIENCE: Duration = Duration::from_secs(20);

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it hangs")
}

/// A server that hands each request to the test.
struct Api {
    url: String,
    requests: mpsc::UnboundedReceiver<Received>,
    _stop: DropGuard,
}

/// A request that waits for its answer.
struct Received {
    head: hyper::http::request::Parts,
    body: Incoming,
    answer: oneshot::Sender<Response<Body>>,
}

impl Api {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let guard = stop.clone().drop_guard();
        tokio::spawn(async move {
            let accept = async {
                loop {
                    let (socket, _) = listener.accept().await.unwrap();
                    socket.set_nodelay(true).unwrap();
                    let (sender, stop) = (sender.clone(), stop.clone());
                    tokio::spawn(async move {
                        let service = service_fn(|request| ask(sender.clone(), request));
                        let mut http = hyper::server::conn::http1::Builder::new();
                        http.max_buf_size(16 * 1024);
                        tokio::select! {
                            _ = http.serve_connection(TokioIo::new(socket), service) => {}
                            () = stop.cancelled() => {}
                        }
                    });
                }
            };
            tokio::select! {
                () = accept => {}
                () = stop.cancelled() => {}
            }
        });
        Self { url, requests, _stop: guard }
    }

    async fn next(&mut self) -> Received {
        within(self.requests.recv()).await.expect("a request")
    }

    /// Nothing reached it.
    fn assert_untouched(&mut self) {
        assert!(self.requests.try_recv().is_err());
    }
}

async fn ask(
    sender: mpsc::UnboundedSender<Received>,
    request: Request<Incoming>,
) -> Result<Response<Body>, std::io::Error> {
    let (head, body) = request.into_parts();
    let (answer, answered) = oneshot::channel();
    let _ = sender.send(Received { head, body, answer });
    // Without an answer the connection breaks.
    answered.await.map_err(std::io::Error::other)
}

impl Received {
    /// Reads the body and answers 200 with these bytes and headers.
    async fn say(self, headers: &[(&'static str, &str)], body: impl Into<Bytes>) -> Bytes {
        self.say_status(200, headers, body).await
    }

    async fn say_status(
        self,
        status: u16,
        headers: &[(&'static str, &str)],
        body: impl Into<Bytes>,
    ) -> Bytes {
        let asked = within(self.body.collect()).await.unwrap().to_bytes();
        let body = Full::new(body.into()).map_err(|never: Infallible| match never {});
        let _ = self.answer.send(response(status, headers, body.boxed_unsync()));
        asked
    }

    /// Reads the body and answers with a stream that the test goes on with.
    async fn stream(self, headers: &[(&'static str, &str)]) -> Pour {
        self.read_and_stream(headers).await.1
    }

    async fn read_and_stream(self, headers: &[(&'static str, &str)]) -> (Bytes, Pour) {
        let asked = within(self.body.collect()).await.unwrap().to_bytes();
        let (pour, receiver) = mpsc::channel(1);
        let frames = stream::unfold(receiver, |mut receiver| async move {
            let piece: std::io::Result<Bytes> = receiver.recv().await?;
            Some((piece.map(Frame::data), receiver))
        });
        let _ = self.answer.send(response(200, headers, StreamBody::new(frames).boxed_unsync()));
        (asked, Pour(pour))
    }
}

/// The body of an answer that is under way. Dropping it ends it cleanly.
struct Pour(mpsc::Sender<std::io::Result<Bytes>>);

impl Pour {
    async fn send(&self, bytes: impl Into<Bytes>) {
        within(self.0.send(Ok(bytes.into()))).await.expect("somebody reads");
    }

    async fn break_off(self) {
        within(self.0.send(Err(std::io::Error::other("broken")))).await.expect("somebody reads");
    }

    /// Resolves when whoever asked has hung up.
    async fn hung_up(&self) {
        within(self.0.closed()).await;
    }
}

fn response(status: u16, headers: &[(&'static str, &str)], body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    for (name, value) in headers {
        response.headers_mut().append(*name, value.parse().unwrap());
    }
    response
}

const SSE: &[(&str, &str)] = &[("content-type", "text/event-stream")];
/// A question of the conversation: it offers a tool.
const QUESTION: &str = r#"{"model":"m","tools":[{"name":"Bash"}],"stream":true}"#;

fn client() -> reqwest::Client {
    client_builder(&"http://127.0.0.1".parse().unwrap(), PATIENCE).build().unwrap()
}

/// A question in the name of this session.
fn question(tap: &Tap, session: &str) -> reqwest::RequestBuilder {
    client()
        .post(format!("{}/v1/messages?beta=true", tap.base_url()))
        .header("x-claude-code-session-id", session)
        .body(QUESTION)
}

fn event(json: &str) -> String {
    let kind: serde_json::Value = serde_json::from_str(json).unwrap();
    format!("event: {}\ndata: {json}\n\n", kind["type"].as_str().unwrap())
}

fn began(id: &str) -> String {
    event(&format!(r#"{{"type":"message_start","message":{{"id":"{id}","model":"m"}}}}"#))
}

fn text(delta: &str) -> String {
    event(&format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{delta}"}}}}"#
    ))
}

fn ended() -> String {
    event(r#"{"type":"message_stop"}"#)
}

async fn next(watched: &mut mpsc::UnboundedReceiver<Tapped>) -> Tapped {
    within(watched.recv()).await.expect("the tap lives")
}

/// Everything that is told until the request is over, with the status of its end.
async fn until_end(watched: &mut mpsc::UnboundedReceiver<Tapped>) -> (Vec<Fact>, Option<u16>) {
    let mut facts = Vec::new();
    loop {
        match next(watched).await {
            Tapped::RequestBegan { .. } => {}
            Tapped::Fact { fact, .. } => facts.push(*fact),
            Tapped::RequestEnded { status, .. } => return (facts, status),
        }
    }
}

/// Headers as text, sorted, without those of the connection.
fn listed(headers: &HeaderMap) -> Vec<String> {
    let mut list: Vec<String> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    list.sort();
    list
}
