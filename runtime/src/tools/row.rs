//! One tool behind the registry: a trait that a tool's file implements, and its row in the table.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::input;
use super::scope::Scope;
use super::{Grant, Requirement, ToolOutcome, ToolSpec};
use crate::event::StreamSink;
use crate::permissions::PermissionLevel;

/// What a running call may use besides the [`Scope`].
#[derive(Clone)]
pub(super) struct CallContext {
    /// Id of the tool use, for live output.
    pub id: String,
    pub sink: Arc<dyn StreamSink>,
    pub cancel: CancellationToken,
}

/// A built-in tool. Its output, facts and preview are redacted by the registry; what it streams
/// itself it redacts itself.
pub(super) trait Tool: 'static {
    type Input: DeserializeOwned + JsonSchema + Send;

    /// As the model calls it.
    const NAME: &'static str;
    /// Other names under which flags and rules may mean it.
    const ALIASES: &'static [&'static str] = &[];
    /// Written for the model.
    const DESCRIPTION: &'static str;
    const LEVEL: PermissionLevel;

    /// What "for this session" would allow.
    fn grant(input: &Self::Input) -> Grant;

    /// Why this call is asked in every mode.
    fn always_ask(_scope: &Scope, _input: &Self::Input) -> Option<String> {
        None
    }

    /// A unified diff of what it would do.
    fn preview(_scope: &Scope, _input: &Self::Input) -> Option<String> {
        None
    }

    fn run(
        scope: Arc<Scope>,
        input: Self::Input,
        call: CallContext,
    ) -> impl Future<Output = ToolOutcome> + Send;
}

/// A [`Tool`] with its types erased: one row of the registry's table.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub level: PermissionLevel,
    pub spec: fn() -> ToolSpec,
    pub requirement: fn(&Scope, &str) -> Requirement,
    pub preview: fn(&Scope, &str) -> Option<String>,
    pub run: fn(Arc<Scope>, String, CallContext) -> BoxFuture<'static, ToolOutcome>,
}

/// The row of a tool.
pub(super) const fn row<T: Tool>() -> Row {
    Row {
        name: T::NAME,
        aliases: T::ALIASES,
        level: T::LEVEL,
        spec: spec::<T>,
        requirement: requirement::<T>,
        preview: preview::<T>,
        run: run::<T>,
    }
}

fn spec<T: Tool>() -> ToolSpec {
    ToolSpec {
        name: T::NAME.to_owned(),
        description: T::DESCRIPTION.to_owned(),
        input_schema: input::schema_of::<T::Input>(),
    }
}

/// In the grant of a call that our tool cannot read.
pub(super) const UNREADABLE: &str = ":unreadable:";

fn requirement<T: Tool>(scope: &Scope, text: &str) -> Requirement {
    match input::parse::<T::Input>(T::NAME, text) {
        Ok(input) => Requirement {
            level: T::LEVEL,
            always_ask: T::always_ask(scope, &input),
            grant: T::grant(&input),
        },
        // It will fail when run; the grant must not cover anything else.
        Err(_) => Requirement {
            level: T::LEVEL,
            always_ask: None,
            grant: Grant {
                key: format!("{}{UNREADABLE}{text}", T::NAME),
                words: format!("this unreadable call of {}", T::NAME),
            },
        },
    }
}

fn preview<T: Tool>(scope: &Scope, text: &str) -> Option<String> {
    T::preview(scope, &input::parse::<T::Input>(T::NAME, text).ok()?)
}

fn run<T: Tool>(
    scope: Arc<Scope>,
    text: String,
    call: CallContext,
) -> BoxFuture<'static, ToolOutcome> {
    Box::pin(async move {
        match input::parse::<T::Input>(T::NAME, &text) {
            Ok(input) => T::run(scope, input, call).await,
            Err(message) => ToolOutcome::error(message),
        }
    })
}

/// Runs blocking work off the runtime's thread. A cancelled call returns at once; the work sees
/// the token and stops by itself.
pub(super) async fn blocking(
    call: &CallContext,
    work: impl FnOnce() -> ToolOutcome + Send + 'static,
) -> ToolOutcome {
    let task = tokio::task::spawn_blocking(work);
    tokio::select! {
        biased;
        done = task => joined(done),
        () = call.cancel.cancelled() => ToolOutcome::error("interrupted"),
    }
}

/// As [`blocking`], for work that is short and must not be reported as interrupted when it in fact
/// happened: a write.
pub(super) async fn blocking_to_the_end(
    work: impl FnOnce() -> ToolOutcome + Send + 'static,
) -> ToolOutcome {
    joined(tokio::task::spawn_blocking(work).await)
}

fn joined(done: Result<ToolOutcome, tokio::task::JoinError>) -> ToolOutcome {
    match done {
        Ok(outcome) => outcome,
        // Handed on to the one place that turns a panic into an outcome.
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => ToolOutcome::error("interrupted: the program is ending"),
    }
}
