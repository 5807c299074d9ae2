//! One request until its answer is complete, cancelled, cut, or refused for good.
//!
//! This is the only place that knows bytes, silence, repetition and cancelling; the providers' files
//! only say what to send and what the events mean. A request is repeated only when the one before is
//! dead and nothing of its answer was shown.

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Request, Response};

use super::draft::{Draft, Ending};
use super::failure::{self, Failure, ProviderError};
use super::retry::{RetryConfig, Wishes};
use super::sse::{EventStream, Silence, Waited};
use super::transport::{Endpoint, Timing};
use super::{ApiError, AssistantTurn, CutCause, StopReason};
use crate::context::TurnContext;
use crate::event::TuiEvent;

/// Most bytes of an error body that are read.
const MAX_ERROR_BODY: usize = 64 * 1024;

/// The stop reason of a message that filled the context window.
const WINDOW_FULL: &str = "model_context_window_exceeded";

/// What one event of a stream meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Something of the answer, or something we do not know.
    Data,
    /// Only a sign of life.
    KeepAlive,
    /// The answer is complete.
    Complete,
}

/// An event that ends the stream.
#[derive(Debug)]
pub(super) enum Fault {
    /// The provider reports an error inside the stream.
    Provider(ProviderError),
    /// What came is not the protocol, in these words.
    Malformed(String),
}

/// What a provider's events mean.
pub(super) trait Mapper: Send {
    /// Takes one event: its name, if it has one, and its data.
    fn accept(&mut self, name: &str, data: &str) -> Result<Progress, Fault>;
    /// Whether the answer is complete if nothing more comes.
    fn complete_at_end(&self) -> bool;
}

/// Everything that stays the same over the attempts.
pub(super) struct Exchange<'a> {
    pub endpoint: &'a Endpoint,
    pub timing: &'a Timing,
    pub retry: &'a RetryConfig,
    pub cx: &'a TurnContext,
    pub model: &'a str,
}

enum Outcome {
    Complete,
    Cancelled,
    Cut(CutCause),
    Failed(Failure),
}

impl Exchange<'_> {
    /// Sends `request` until it is answered. `mapper` makes the reader of one attempt's events.
    pub async fn run<'d, M: Mapper>(
        &'d self,
        request: &Request,
        mapper: impl Fn(Draft<'d>) -> M,
        into_draft: impl Fn(M) -> Draft<'d>,
    ) -> Result<AssistantTurn, ApiError> {
        let client = self.endpoint.client(self.timing)?;
        let mut waits = self.retry.waits();
        let mut attempt = 0;
        loop {
            let mut reader = mapper(Draft::new(&*self.cx.sink, self.model));
            let outcome = self.attempt(&client, request, &mut reader).await;
            let draft = into_draft(reader);
            let failure = match outcome {
                Outcome::Complete => return window_checked(draft.finish(Ending::Complete)),
                Outcome::Cancelled => return Ok(draft.finish(Ending::Cancelled)),
                Outcome::Cut(cause) => return Err(cut(cause, draft)),
                Outcome::Failed(failure) if draft.shown() => {
                    return Err(cut(failure.into_cut_cause(), draft));
                }
                Outcome::Failed(failure) => failure,
            };
            let Some(wait) = waits.next(failure.advice) else { return Err(failure.given_up()) };
            attempt += 1;
            tracing::info!(
                endpoint = self.endpoint.name(),
                attempt,
                "request failed; trying again"
            );
            self.cx.sink.emit(TuiEvent::Retrying {
                attempt,
                max_attempts: self.retry.max_retries,
                wait,
                reason: failure.reason(),
            });
            tokio::select! {
                biased;
                () = self.cx.cancel.cancelled() => return Ok(draft.finish(Ending::Cancelled)),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn attempt(
        &self,
        client: &reqwest::Client,
        request: &Request,
        reader: &mut impl Mapper,
    ) -> Outcome {
        let Some(request) = request.try_clone() else {
            return Outcome::Failed(Failure::fatal(self.endpoint.unexpected("no body to send")));
        };
        let mut silence = Silence::start(self.timing, self.cx);
        let response = match silence.wait(client.execute(request)).await {
            Waited::Cancelled => return Outcome::Cancelled,
            Waited::Idle(limit) => return Outcome::Cut(CutCause::Idle(limit)),
            Waited::Came(Err(error)) => {
                return Outcome::Failed(failure::unreachable(self.endpoint, &error));
            }
            Waited::Came(Ok(response)) => response,
        };
        if !response.status().is_success() {
            return self.refused(response, &mut silence).await;
        }
        if let Some(wrong) = wrong_content_type(response.headers()) {
            let message = format!("the answer is {wrong}, not an event stream; check the base URL");
            return Outcome::Failed(Failure::fatal(self.endpoint.unexpected(&message)));
        }
        self.read(EventStream::new(response), reader, &mut silence).await
    }

    /// Reads events until the answer is complete.
    async fn read(
        &self,
        mut events: EventStream,
        reader: &mut impl Mapper,
        silence: &mut Silence<'_>,
    ) -> Outcome {
        loop {
            let event = match silence.wait(events.next()).await {
                Waited::Cancelled => return Outcome::Cancelled,
                Waited::Came(Some(Ok(event))) => event,
                // However it ends: an answer that said that it is whole is whole.
                _ if reader.complete_at_end() => return Outcome::Complete,
                Waited::Idle(limit) => return Outcome::Cut(CutCause::Idle(limit)),
                Waited::Came(None) => return Outcome::Cut(CutCause::ConnectionClosed),
                Waited::Came(Some(Err(cause))) => return Outcome::Cut(self.cleaned(cause)),
            };
            let Some(data) = event.data else { continue };
            match reader.accept(event.event.as_deref().unwrap_or_default(), &data) {
                Ok(Progress::KeepAlive) => {}
                Ok(Progress::Data) => silence.heard(),
                Ok(Progress::Complete) => {
                    events.finish_in_background();
                    return Outcome::Complete;
                }
                Err(Fault::Malformed(message)) => {
                    return Outcome::Failed(Failure::fatal(self.endpoint.unexpected(&message)));
                }
                Err(Fault::Provider(error)) => {
                    return Outcome::Failed(failure::in_stream(self.endpoint, &error));
                }
            }
        }
    }

    /// Reads why the provider refused, within bounds.
    async fn refused(&self, mut response: Response, silence: &mut Silence<'_>) -> Outcome {
        let status = response.status().as_u16();
        let wishes = Wishes::read(response.headers(), jiff::Timestamp::now());
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BODY {
            match silence.wait(response.chunk()).await {
                Waited::Cancelled => return Outcome::Cancelled,
                Waited::Came(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
                Waited::Idle(_) | Waited::Came(Ok(None) | Err(_)) => break,
            }
        }
        let error = ProviderError::parse(&body);
        Outcome::Failed(failure::refusal(self.endpoint, status, &error, wishes))
    }

    fn cleaned(&self, cause: CutCause) -> CutCause {
        match cause {
            CutCause::Transport(message) => CutCause::Transport(self.endpoint.clean(&message)),
            other => other,
        }
    }
}

fn cut(cause: CutCause, draft: Draft<'_>) -> ApiError {
    ApiError::StreamCut { cause, partial: Box::new(draft.finish(Ending::Cut)) }
}

/// An answer that ended because the window is full and says nothing is a request that did not fit.
fn window_checked(turn: AssistantTurn) -> Result<AssistantTurn, ApiError> {
    let full = matches!(&turn.stop_reason, StopReason::Other(reason) if reason == WINDOW_FULL);
    if full && turn.messages.iter().all(|message| message.blocks.is_empty()) {
        let message = "the conversation fills its context window".to_owned();
        return Err(ApiError::ContextWindowExceeded { message });
    }
    Ok(turn)
}

/// The content type of an answer that cannot be a stream. Servers that name none, or a wrong one
/// that is harmless, are believed.
fn wrong_content_type(headers: &HeaderMap) -> Option<&str> {
    let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let kind = kind.split(';').next().unwrap_or(kind).trim();
    matches!(kind, "text/html" | "application/json").then_some(kind)
}
