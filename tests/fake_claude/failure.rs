//! What the CLI makes of a failed request: its own class, its words, the fields of the record.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::Failure;
use crate::session::Session;

/// How a failure is told.
#[derive(Debug, Clone)]
pub struct Told {
    /// The class in the StopFailure hook and in the record.
    pub class: &'static str,
    pub text: String,
    pub details: Option<String>,
    /// Further fields of the record.
    pub record: Value,
}

impl Failure {
    /// The CLI gave up a message that was too long too often.
    pub fn max_output() -> Self {
        Self { kind: "max_output_tokens".to_owned(), ..Self::default() }
    }

    pub fn may_be_repeated(&self) -> bool {
        match self.status {
            None => self.kind != "max_output_tokens" && self.kind != "refusal",
            Some(401 | 408 | 409 | 429) => self.quota.is_none(),
            Some(status) => status >= 500,
        }
    }

    /// How long to wait before try number `attempt` (from 1).
    pub fn delay(&self, attempt: u32, session: &Session) -> Duration {
        let first = session.quirks.millis("retry-delay").unwrap_or(Duration::from_millis(500));
        self.retry_after.unwrap_or_else(|| first * 2_u32.saturating_pow(attempt.min(7) - 1))
    }

    pub fn tell(&self, session: &Session, partial: bool) -> Told {
        let mut told = self.classify(session, partial);
        let record = &mut told.record;
        record["error"] = json!(told.class);
        record["isApiErrorMessage"] = json!(true);
        if let Some(id) = &self.request_id {
            record["requestId"] = json!(id);
        }
        if let Some(status) = self.status {
            record["apiErrorStatus"] = json!(status);
            if session.version.is_332() {
                record["apiErrorType"] = json!(self.kind);
            }
        }
        if session.version.is_332() && !partial {
            record["failedResponseHadNoToolCall"] = json!(true);
        }
        told
    }

    fn classify(&self, session: &Session, partial: bool) -> Told {
        let plain = |class, text: String| Told { class, text, details: None, record: json!({}) };
        let api_error = |status: u16| format!("API Error: {status} {}", self.message);
        match (self.status, self.kind.as_str()) {
            (None, "max_output_tokens") => {
                let mut told = plain(
                    "max_output_tokens",
                    "API Error: Claude's response exceeded the 128000 output token maximum. To \
                     configure this behavior, set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment \
                     variable."
                        .to_owned(),
                );
                told.record = json!({"apiError": "max_output_tokens"});
                told
            }
            (None, "refusal") => plain(
                "invalid_request",
                "API Error: Claude Code is unable to respond to this request".to_owned(),
            ),
            (None, "connection_error") => {
                plain("unknown", "API Error: Unable to connect to API".to_owned())
            }
            (None, _) => {
                let class = if session.version.is_332() { "server_error" } else { "unknown" };
                let mut told = plain(
                    class,
                    "API Error: Server error mid-response. The response above may be incomplete."
                        .to_owned(),
                );
                if session.version.is_332() {
                    told.record = json!({"truncatedAfterOutput": partial,
                        "streamCutCause": class,
                        "streamCutError": {"message": self.message}});
                }
                told
            }
            (Some(401), _) => {
                plain("authentication_failed", "Invalid API key · Fix external API key".to_owned())
            }
            (Some(403), _) => plain(
                "authentication_failed",
                format!("Please run /login · API Error: 403 {}", self.message),
            ),
            (Some(404), _) => plain(
                "model_not_found",
                format!(
                    "There's an issue with the selected model ({}). It may not exist or you may \
                     not have access to it.",
                    session.model()
                ),
            ),
            (Some(400), _) if self.message.contains("prompt is too long") => Told {
                details: Some(self.message.clone()),
                record: json!({"errorDetails": self.message}),
                ..plain("invalid_request", "Prompt is too long · /compact to free space".to_owned())
            },
            (Some(400), _) if self.message.contains("credit balance") => {
                plain("billing_error", "Credit balance is too low".to_owned())
            }
            (Some(400), _) => plain("unknown", api_error(400)),
            (Some(429), _) => self.limited(session),
            (Some(529), _) => plain(
                "server_error",
                "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try \
                 again in a moment."
                    .to_owned(),
            ),
            (Some(status), _) => {
                plain("server_error", format!("{}. This is usually temporary.", api_error(status)))
            }
        }
    }

    fn limited(&self, session: &Session) -> Told {
        let quota = self.quota.as_ref().filter(|_| session.api.has_account());
        let Some(quota) = quota else {
            return Told {
                class: "rate_limit",
                text: format!("API Error: Request rejected (429) · {}", self.message),
                details: None,
                record: json!({}),
            };
        };
        Told {
            class: "rate_limit",
            text: "You've hit your limit · resets 2am (UTC)".to_owned(),
            details: None,
            record: json!({"apiError": "usage_limit_reached", "quotaLimits": quota}),
        }
    }
}
