//! Failures of the CLI as the runtime's errors. What had come before one is kept: it is part of what
//! happened.

use claw_runtime::api::{ApiError, AssistantTurn, CutCause};

use crate::error::WorkerError;
use crate::fact::{Fact, FailureKind};

/// What to look at when the login is refused.
pub(super) const LOGIN: &str = "the login of Claude Code: run `claude` and /login, or set its key";

/// The failure of an API call that ended a turn.
pub(super) fn of_api(fact: Fact, partial: AssistantTurn) -> ApiError {
    let Fact::ApiFailure { kind, status, text, details, quota } = fact else {
        return cut(CutCause::Worker("the turn failed without a reason".to_owned()), partial);
    };
    let mut message = text;
    if let Some(details) = details.filter(|details| !message.contains(details.as_str())) {
        message = format!("{message} ({details})");
    }
    if let Some(resets) = quota.as_ref().and_then(|quota| quota.resets_at).and_then(local_time) {
        message = format!("{message} (the limit resets at {resets})");
    }
    // Only a cut keeps what had come; what failed before its first word has its own kind.
    if !partial.messages.is_empty() {
        let kind = name(&kind).to_owned();
        return cut(CutCause::Provider { kind, message }, partial);
    }
    match kind {
        FailureKind::Authentication => {
            ApiError::Auth { status: status.unwrap_or(401), message, credential: LOGIN }
        }
        FailureKind::RateLimit | FailureKind::UsageLimit => {
            ApiError::RateLimited { message, retry_after: None }
        }
        FailureKind::PromptTooLong => ApiError::Rejected {
            status: status.unwrap_or(400),
            message: format!("{message} (/compact makes room)"),
        },
        FailureKind::Billing | FailureKind::ModelNotFound | FailureKind::InvalidRequest => {
            ApiError::Rejected { status: status.unwrap_or(400), message }
        }
        FailureKind::Server => match status {
            Some(529) => ApiError::Overloaded { message },
            status => ApiError::Server { status: status.unwrap_or(500), message },
        },
        FailureKind::MaxOutputTokens | FailureKind::Unknown(_) => ApiError::Worker { message },
    }
}

/// The failure of the worker itself after the prompt was taken.
pub(super) fn of_worker(error: &WorkerError, partial: AssistantTurn) -> ApiError {
    let advice = match error {
        WorkerError::Crashed { .. } | WorkerError::Inactive(_) => {
            ". What it had begun may have been done: look before you send the prompt again; the next prompt goes on in the same Claude session"
        }
        _ => "",
    };
    let message = format!("{error}{advice}");
    if partial.messages.is_empty() {
        ApiError::Worker { message }
    } else {
        cut(CutCause::Worker(message), partial)
    }
}

fn cut(cause: CutCause, partial: AssistantTurn) -> ApiError {
    ApiError::StreamCut { cause, partial: Box::new(partial) }
}

fn name(kind: &FailureKind) -> &str {
    match kind {
        FailureKind::Authentication => "authentication_failed",
        FailureKind::Billing => "billing_error",
        FailureKind::RateLimit => "rate_limit",
        FailureKind::UsageLimit => "usage_limit",
        FailureKind::ModelNotFound => "model_not_found",
        FailureKind::PromptTooLong => "prompt_too_long",
        FailureKind::InvalidRequest => "invalid_request",
        FailureKind::Server => "server_error",
        FailureKind::MaxOutputTokens => "max_output_tokens",
        FailureKind::Unknown(name) => name,
    }
}

/// A Unix time as the person's clock shows it.
fn local_time(seconds: i64) -> Option<String> {
    let time = jiff::Timestamp::from_second(seconds).ok()?;
    Some(time.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%F %H:%M").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Quota;
    use claw_runtime::api::StopReason;
    use claw_runtime::session::ConversationMessage;

    fn failure(kind: FailureKind, status: Option<u16>) -> Fact {
        Fact::ApiFailure { kind, status, text: "it failed".into(), details: None, quota: None }
    }

    fn nothing() -> AssistantTurn {
        AssistantTurn { messages: Vec::new(), stop_reason: StopReason::EndTurn }
    }

    fn something() -> AssistantTurn {
        AssistantTurn { messages: vec![ConversationMessage::user("x")], ..nothing() }
    }

    #[test]
    fn each_class_of_failure_says_what_to_do_next() {
        let kind = |fact| of_api(fact, nothing());
        assert!(matches!(
            kind(failure(FailureKind::Authentication, Some(403))),
            ApiError::Auth { status: 403, .. }
        ));
        assert!(matches!(
            kind(failure(FailureKind::UsageLimit, None)),
            ApiError::RateLimited { .. }
        ));
        assert!(matches!(
            kind(failure(FailureKind::Server, Some(529))),
            ApiError::Overloaded { .. }
        ));
        assert!(matches!(
            kind(failure(FailureKind::Server, None)),
            ApiError::Server { status: 500, .. }
        ));
        assert!(matches!(
            kind(failure(FailureKind::PromptTooLong, None)),
            ApiError::Rejected { status: 400, .. }
        ));
    }

    #[test]
    fn what_had_come_before_a_failure_is_kept() {
        let ApiError::StreamCut { cause, partial } =
            of_api(failure(FailureKind::Server, Some(500)), something())
        else {
            panic!("not kept");
        };
        assert_eq!(partial.messages.len(), 1);
        assert_eq!(cause.to_string(), "the provider reported server_error: it failed");
        let crash = WorkerError::Crashed {
            status: "signal 9".into(),
            screen: String::new(),
            may_have_run: true,
        };
        assert!(matches!(of_worker(&crash, something()), ApiError::StreamCut { .. }));
        assert!(of_worker(&crash, nothing()).to_string().contains("look before you send"));
    }

    #[test]
    fn a_limit_says_when_it_ends() {
        let quota = Quota {
            status: "rejected".into(),
            resets_at: Some(1_800_000_000),
            kind: Some("five_hour".into()),
        };
        let fact = Fact::ApiFailure {
            kind: FailureKind::UsageLimit,
            status: Some(429),
            text: "You've hit your limit".into(),
            details: None,
            quota: Some(quota),
        };
        assert!(of_api(fact, nothing()).to_string().contains("resets at 2027-01-1"), "2027-01-15");
    }
}
