//! One request: from the worker to the upstream and the answer back, both as they come.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use claw_runtime::api::transport::{client_builder, innermost};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Method, Request, Response, StatusCode};
use reqwest::Url;
use serde_json::json;

use super::reader::Reader;
use super::scan::ToolScan;
use super::watch::{Audience, Watchers};
use crate::timings::TAP_CONNECT;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// The body of an answer, ours or the upstream's.
type Answer = UnsyncBoxBody<Bytes, BoxError>;

/// The real API.
pub(super) struct Upstream {
    /// Without a slash at its end.
    base: String,
    url: Url,
    /// Made for the first request: reading the system's certificates takes milliseconds.
    client: OnceLock<reqwest::Client>,
}

impl Upstream {
    /// None when it is not an http(s) address.
    pub fn new(base: &str) -> Option<Self> {
        let base = base.trim().trim_end_matches('/');
        let url = Url::parse(base).ok()?;
        let usable = matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none();
        usable.then(|| Self { base: base.to_owned(), url, client: OnceLock::new() })
    }

    fn client(&self) -> reqwest::Result<reqwest::Client> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let client = client_builder(&self.url, TAP_CONNECT).build()?;
        Ok(self.client.get_or_init(|| client).clone())
    }
}

/// What every request needs.
pub(super) struct Tapping {
    pub upstream: Upstream,
    pub secret: String,
    pub watchers: Arc<Watchers>,
}

impl Tapping {
    /// What follows the secret in a path with its query, e.g. `/v1/messages?beta=true`; none when the
    /// secret is not there.
    fn inside<'p>(&self, path_and_query: &'p str) -> Option<&'p str> {
        let after_slash = path_and_query.strip_prefix('/')?;
        let end = after_slash.find(['/', '?']).unwrap_or(after_slash.len());
        let (given, rest) = after_slash.split_at(end);
        same(given.as_bytes(), self.secret.as_bytes()).then_some(rest)
    }
}

/// Compares in a time that does not tell where the two differ.
fn same(given: &[u8], secret: &[u8]) -> bool {
    let differing = given.iter().zip(secret).fold(0, |differing, (a, b)| differing | (a ^ b));
    given.len() == secret.len() && std::hint::black_box(differing) == 0
}

/// Answers one request of a worker.
pub(super) async fn forward(
    tapping: Arc<Tapping>,
    request: Request<Incoming>,
) -> Result<Response<Answer>, Infallible> {
    let path_and_query = request.uri().path_and_query().map_or("", |path| path.as_str());
    let Some(inside) = tapping.inside(path_and_query) else {
        return Ok(own_answer(StatusCode::NOT_FOUND, "not_found_error", "not found"));
    };
    let mut audience = audience_of(&tapping.watchers, &request, inside);
    let target = format!("{}{inside}", tapping.upstream.base);
    let scan = Arc::new(Mutex::new(ToolScan::default()));
    let answer = match send(&tapping.upstream, &target, request, &scan, audience.is_some()).await {
        Ok(answer) => answer,
        Err(error) => {
            if let Some(audience) = &mut audience {
                let scan = scan.lock().unwrap_or_else(PoisonError::into_inner);
                audience.answered(None, &HeaderMap::new(), !scan.denied());
            }
            // Neither the address with its path nor a header is in the innermost cause.
            let message = format!(
                "claw could not reach {}: {}",
                tapping.upstream.url.origin().ascii_serialization(),
                innermost(&error),
            );
            return Ok(own_answer(StatusCode::BAD_GATEWAY, "api_error", &message));
        }
    };
    let (mut head, body) = answer.into_parts();
    remove_hop_by_hop(&mut head.headers);
    let body = match audience {
        None => body.map_err(Into::into).boxed_unsync(),
        Some(mut audience) => {
            // An answer begins when the whole question has been read.
            let of_conversation = scan.lock().unwrap_or_else(PoisonError::into_inner).found();
            audience.answered(Some(head.status.as_u16()), &head.headers, of_conversation);
            let reader = Reader::for_answer(&head.headers).filter(|_| of_conversation);
            Seen { body, reader, audience }.boxed_unsync()
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    Ok(response)
}

/// Who watches this request: only questions to the model are told of.
fn audience_of(
    watchers: &Arc<Watchers>,
    request: &Request<Incoming>,
    inside: &str,
) -> Option<Audience> {
    let path = inside.split('?').next().unwrap_or_default();
    if request.method() != Method::POST || path.trim_end_matches('/') != "/v1/messages" {
        return None;
    }
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let agent = header("x-claude-code-agent-id").map(str::to_owned);
    Audience::of(watchers, header("x-claude-code-session-id")?, agent)
}

/// Sends the request on and waits for the head of its answer.
async fn send(
    upstream: &Upstream,
    target: &str,
    request: Request<Incoming>,
    scan: &Arc<Mutex<ToolScan>>,
    watched: bool,
) -> Result<Response<reqwest::Body>, Failed> {
    let (mut head, body) = request.into_parts();
    remove_hop_by_hop(&mut head.headers);
    // The address of the upstream is another one, and its answer must stay readable on its way.
    for name in [HOST, ACCEPT_ENCODING, EXPECT] {
        head.headers.remove(name);
    }
    let mut onward =
        reqwest::Request::new(head.method, Url::parse(target).map_err(|_| Failed::Path)?);
    *onward.headers_mut() = head.headers;
    if !body.is_end_stream() {
        let scan = watched.then(|| Arc::clone(scan));
        *onward.body_mut() = Some(reqwest::Body::wrap(Asked { body, scan }));
    }
    Ok(upstream.client()?.execute(onward).await?.into())
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("the path of the request is not one")]
    Path,
    #[error(transparent)]
    Http(#[from] reqwest::Error),
}

/// Headers that belong to one connection and not to the message: the fixed ones, and those that
/// `connection` names.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    let fixed = [
        CONNECTION,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    for name in fixed {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection"] {
        headers.remove(name);
    }
}

/// An answer of our own, in the form of the API's errors.
fn own_answer(status: StatusCode, kind: &str, message: &str) -> Response<Answer> {
    let body = json!({"type": "error", "error": {"type": kind, "message": message}}).to_string();
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The question as it passes, piece by piece.
struct Asked {
    body: Incoming,
    scan: Option<Arc<Mutex<ToolScan>>>,
}

impl Body for Asked {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let (Poll::Ready(Some(Ok(frame))), Some(scan)) = (&polled, &self.scan)
            && let Some(bytes) = frame.data_ref()
        {
            scan.lock().unwrap_or_else(PoisonError::into_inner).feed(bytes);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The answer as it passes; dropped with the connection of either side.
struct Seen {
    body: reqwest::Body,
    reader: Option<Reader>,
    audience: Audience,
}

impl Body for Seen {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(reader), Some(bytes)) = (&mut this.reader, frame.data_ref()) {
                    reader.feed(bytes, |fact| this.audience.fact(fact));
                }
            }
            Poll::Ready(Some(Err(_)) | None) => this.audience.end(),
            Poll::Pending => {}
        }
        polled.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
