//! What a provider's refusal means for us: the typed error, and whether to try again.
//!
//! Recognition goes by status, error type and code. One thing the wires do not type is "the prompt
//! does not fit": there the documented form of the message is read, here and nowhere else.

use std::error::Error;
use std::time::Duration;

use serde_json::Value;

use super::retry::{Advice, Wishes, is_transient};
use super::transport::{Endpoint, innermost};
use super::{ApiError, CutCause};

/// A failed attempt.
#[derive(Debug)]
pub(super) struct Failure {
    pub error: ApiError,
    pub advice: Advice,
}

impl Failure {
    /// The same request would fail the same way.
    pub fn fatal(error: ApiError) -> Self {
        Self { error, advice: Advice::GiveUp }
    }

    /// The same request may succeed later.
    pub fn transient(error: ApiError) -> Self {
        Self { error, advice: Advice::Again { after: None } }
    }

    /// For the notice of a repetition.
    pub fn reason(&self) -> String {
        self.error.to_string()
    }

    /// The error when the request is not sent again. A provider that named a time is quoted: only
    /// the person can wait that long.
    pub fn given_up(mut self) -> ApiError {
        if let Advice::Again { after: Some(after) } = self.advice
            && let ApiError::RateLimited { message, .. }
            | ApiError::Overloaded { message }
            | ApiError::Server { message, .. }
            | ApiError::Rejected { message, .. } = &mut self.error
            && !after.is_zero()
        {
            message.push_str(&format!(". Try again in {}", in_words(after)));
        }
        self.error
    }

    /// The same failure when a part of the answer was shown already.
    pub fn into_cut_cause(self) -> CutCause {
        let (kind, message) = match self.error {
            ApiError::Overloaded { message } => ("overloaded_error", message),
            ApiError::RateLimited { message, .. } => ("rate_limit_error", message),
            ApiError::StreamCut { cause, .. } => return cause,
            ApiError::Protocol { message, .. } => return CutCause::Transport(message),
            other => ("error", other.to_string()),
        };
        CutCause::Provider { kind: kind.to_owned(), message }
    }
}

/// A time to wait, rounded up.
fn in_words(wait: Duration) -> String {
    match wait.as_secs() + u64::from(wait.subsec_nanos() > 0) {
        seconds @ ..=90 => format!("{seconds} s"),
        seconds @ ..=7200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3600)),
    }
}

/// An error as a provider words it. Fields that are missing are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ProviderError {
    /// `error.type`.
    pub kind: String,
    /// `error.code`.
    pub code: String,
    pub message: String,
}

impl ProviderError {
    /// Reads an error body. What is not JSON is taken as the message itself.
    pub fn parse(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::from_value(&value),
            Err(_) => {
                Self { message: String::from_utf8_lossy(body).into_owned(), ..Self::default() }
            }
        }
    }

    /// Reads `{"error": {...}}`, `{"error": "..."}` or the error itself.
    pub fn from_value(value: &Value) -> Self {
        let error = value.get("error").unwrap_or(value);
        if let Value::String(message) = error {
            return Self { message: message.clone(), ..Self::default() };
        }
        let field = |name: &str| match &error[name] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        Self { kind: field("type"), code: field("code"), message: field("message") }
    }

    fn is(&self, names: &[&str]) -> bool {
        names.contains(&self.kind.as_str()) || names.contains(&self.code.as_str())
    }

    /// Whether the request did not fit the model's context window.
    fn is_context_window(&self) -> bool {
        self.is(&["context_length_exceeded", "exceed_context_size_error", "request_too_large"])
            || (self.is(&["invalid_request_error", "BadRequestError"])
                && says_too_long(&self.message))
    }

    /// The account is out of money: waiting does not help.
    fn is_quota(&self) -> bool {
        self.is(&["insufficient_quota", "billing_error"])
    }
}

/// Reads the documented forms of "the prompt does not fit": each has a number of tokens and a limit.
fn says_too_long(message: &str) -> bool {
    let lower = message.to_ascii_lowercase();
    let numbers =
        lower.split(|c: char| !c.is_ascii_digit()).filter(|digits| digits.len() >= 3).count();
    let forms = [
        // prompt is too long: 210000 tokens > 200000 maximum
        &["prompt is too long", "tokens >", "maximum"][..],
        // input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000
        &["input length and", "exceed context limit", " > "][..],
        // This model's maximum context length is 8192 tokens. However, you requested 9000 tokens
        &["maximum context length is", "tokens"][..],
    ];
    numbers >= 2 && forms.iter().any(|words| words.iter().all(|word| lower.contains(word)))
}

/// What a connection that could not be made, or broke before an answer, means.
pub(super) fn unreachable(endpoint: &Endpoint, error: &reqwest::Error) -> Failure {
    if let Some(message) = certificate_problem(error) {
        return Failure::fatal(endpoint.unreachable(&message));
    }
    if error.is_builder() {
        return Failure::fatal(endpoint.unreachable(&innermost(error)));
    }
    let message = if error.is_timeout() {
        "the connection could not be opened in time".to_owned()
    } else {
        innermost(error)
    };
    Failure::transient(endpoint.unreachable(&message))
}

/// A certificate that is not trusted now will not be trusted in a second.
fn certificate_problem(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let tls = tls.or_else(|| error.downcast_ref::<rustls::Error>());
        if let Some(rustls::Error::InvalidCertificate(problem)) = tls {
            return Some(format!(
                "its certificate is not trusted ({problem}). If this machine has no CA certificates, \
                 install the package ca-certificates; if a proxy inspects TLS, add its certificate \
                 to the system's store or to the bundle that SSL_CERT_FILE names"
            ));
        }
        // An I/O error hides the error inside it from `source`.
        cause = match inner {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

/// What a status outside 2xx means.
pub(super) fn refusal(
    endpoint: &Endpoint,
    status: u16,
    error: &ProviderError,
    wishes: Wishes,
) -> Failure {
    let message = match endpoint.clean(&error.message) {
        empty if empty.is_empty() => format!("no explanation, status {status}"),
        message => message,
    };
    let transient = wishes.should_retry.unwrap_or(is_transient(status) && !error.is_quota());
    let retry_after = wishes.after;
    let error = match status {
        413 => ApiError::ContextWindowExceeded { message },
        _ if status < 500 && error.is_context_window() => {
            ApiError::ContextWindowExceeded { message }
        }
        401 | 403 => ApiError::Auth { status, message, credential: endpoint.variable() },
        429 => ApiError::RateLimited { message, retry_after },
        529 => ApiError::Overloaded { message },
        500.. if error.is(&["overloaded_error"]) => ApiError::Overloaded { message },
        500.. => ApiError::Server { status, message },
        _ => ApiError::Rejected { status, message },
    };
    let advice = if transient { Advice::Again { after: retry_after } } else { Advice::GiveUp };
    Failure { error, advice }
}

/// What an error event inside a stream means while nothing of the answer was shown.
pub(super) fn in_stream(endpoint: &Endpoint, error: &ProviderError) -> Failure {
    let message = endpoint.clean(&error.message);
    let again = Advice::Again { after: None };
    if error.is_context_window() {
        return Failure {
            error: ApiError::ContextWindowExceeded { message },
            advice: Advice::GiveUp,
        };
    }
    if error.is(&["overloaded_error"]) {
        return Failure { error: ApiError::Overloaded { message }, advice: again };
    }
    if error.is(&["rate_limit_error", "rate_limit_exceeded"]) {
        let error = ApiError::RateLimited { message, retry_after: None };
        return Failure { error, advice: again };
    }
    let transient = error.is(&["api_error", "server_error", "timeout_error"]);
    let kind = endpoint.clean(if error.kind.is_empty() { "error" } else { &error.kind });
    let cause = CutCause::Provider { kind, message };
    let partial = Box::new(super::AssistantTurn {
        messages: Vec::new(),
        stop_reason: super::StopReason::Other("cut off".to_owned()),
    });
    Failure {
        error: ApiError::StreamCut { cause, partial },
        advice: if transient { again } else { Advice::GiveUp },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::transport::{Credential, Secret};

    fn endpoint() -> Endpoint {
        let credential = Credential::ApiKey(Secret::new("marker-key"));
        Endpoint::new("http://h", "/v1/messages", credential, "ANTHROPIC_API_KEY").unwrap()
    }

    fn refused(status: u16, body: &str) -> Failure {
        refusal(&endpoint(), status, &ProviderError::parse(body.as_bytes()), Wishes::default())
    }

    #[test]
    fn a_full_context_window_is_recognised_by_type_code_and_documented_form_only() {
        let anthropic = |message: &str| {
            format!(
                r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{message}"}}}}"#
            )
        };
        let check = |status: u16, body: &str, full: bool| {
            let failure = refused(status, body);
            let is_full = matches!(failure.error, ApiError::ContextWindowExceeded { .. });
            assert_eq!(is_full, full, "{status} {body}");
            assert!(!full || failure.advice == Advice::GiveUp);
        };
        check(400, &anthropic("prompt is too long: 210000 tokens > 200000 maximum"), true);
        check(
            400,
            &anthropic(
                "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, \
                 decrease input length or `max_tokens` and try again",
            ),
            true,
        );
        check(413, "<html>too large</html>", true);
        check(413, r#"{"type":"error","error":{"type":"request_too_large","message":"x"}}"#, true);
        check(400, r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#, true);
        check(
            400,
            r#"{"error":{"message":"x","type":"exceed_context_size_error","code":400}}"#,
            true,
        );
        check(
            400,
            r#"{"object":"error","type":"BadRequestError","code":400,"message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"}"#,
            true,
        );
        // Words alone prove nothing.
        check(400, &anthropic("your prompt is too long-winded"), false);
        check(400, &anthropic("prompt is too long"), false);
        check(500, &anthropic("prompt is too long: 210000 tokens > 200000 maximum"), false);
        check(400, "error decoding response body: no parseable body, context window", false);
    }

    #[test]
    fn an_untrusted_certificate_is_told_and_found_inside_other_errors() {
        let problem = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let error = std::io::Error::other(std::io::Error::other(problem));
        let message = certificate_problem(&error).unwrap();
        assert!(message.contains("not trusted") && message.contains("SSL_CERT_FILE"), "{message}");
        assert_eq!(certificate_problem(&std::io::Error::other("reset")), None);
    }

    #[test]
    fn a_provider_that_says_whether_to_retry_is_believed() {
        let check = |status: u16, should_retry: bool| {
            let wishes = Wishes { should_retry: Some(should_retry), after: None };
            let failure = refusal(&endpoint(), status, &ProviderError::default(), wishes);
            assert_eq!(failure.advice != Advice::GiveUp, should_retry, "{status}");
        };
        check(429, false);
        check(400, true);
    }

    #[test]
    fn a_time_that_is_not_waited_for_is_told() {
        let check = |seconds: u64, expected: &str| {
            let after = Some(Duration::from_secs(seconds));
            let wishes = Wishes { should_retry: None, after };
            let body = br#"{"error":{"type":"t","message":"slow down"}}"#;
            let failure = refusal(&endpoint(), 429, &ProviderError::parse(body), wishes);
            assert_eq!(failure.reason(), "rate limited by the provider: slow down");
            assert_eq!(failure.given_up().to_string(), expected);
        };
        check(3600, "rate limited by the provider: slow down. Try again in 60 min");
        check(20, "rate limited by the provider: slow down. Try again in 20 s");
        check(86_400, "rate limited by the provider: slow down. Try again in 24 h");
        check(0, "rate limited by the provider: slow down");
    }

    #[test]
    fn a_refusal_is_typed_by_what_to_do_next() {
        let check = |status: u16, body: &str, expected: &str, again: bool| {
            let failure = refused(status, body);
            assert_eq!(failure.error.to_string(), expected);
            assert_eq!(failure.advice != Advice::GiveUp, again, "{expected}");
        };
        let body = r#"{"error":{"type":"t","message":"why"}}"#;
        check(401, body, "not authorised (401): why. Check ANTHROPIC_API_KEY.", false);
        check(404, body, "the provider refused the request (404): why", false);
        check(409, body, "the provider refused the request (409): why", true);
        check(429, body, "rate limited by the provider: why", true);
        check(500, body, "the provider failed (500): why", true);
        check(529, body, "the provider is overloaded: why", true);
        check(
            503,
            r#"{"error":{"type":"overloaded_error","message":"why"}}"#,
            "the provider is overloaded: why",
            true,
        );
        check(
            429,
            r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#,
            "rate limited by the provider: pay",
            false,
        );
        check(302, "", "the provider refused the request (302): no explanation, status 302", false);
        check(
            400,
            r#"{"error":"model not found"}"#,
            "the provider refused the request (400): model not found",
            false,
        );
        check(
            400,
            "key marker-key\u{7} is bad",
            "the provider refused the request (400): key [redacted] is bad",
            false,
        );
    }
}
