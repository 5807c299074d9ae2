//! The table of built-in tools and the [`ToolExecutor`] over it.
//!
//! A tool is a row of `BUILT_IN`. What all calls have in common happens here and only here:
//! order, events, time, redaction, and that a panicking tool is an error result.

use std::io;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use thiserror::Error;

use super::bash::Bash;
use super::edit_file::EditFile;
use super::glob_search::GlobSearch;
use super::grep_search::GrepSearch;
use super::read_file::ReadFile;
use super::row::{CallContext, Row, row};
use super::scope::Scope;
use super::todo_write::TodoWrite;
use super::workspace::Workspace;
use super::write_file::WriteFile;
use super::{
    Grant, Requirement, ToolCall, ToolExecutor, ToolFacts, ToolOutcome, ToolSpec, elsewhere,
};
use crate::context::TurnContext;
use crate::event::TuiEvent;
use crate::permissions::PermissionLevel;
use crate::redact::Redactor;

/// Every built-in tool.
const BUILT_IN: &[Row] = &[
    row::<Bash>(),
    row::<EditFile>(),
    row::<GlobSearch>(),
    row::<GrepSearch>(),
    row::<ReadFile>(),
    row::<TodoWrite>(),
    row::<WriteFile>(),
];

const NOT_RUN: &str = "interrupted before it ran";

/// The own name of a built-in tool, from itself or from Claude Code's spelling of it (`Read` is
/// `read_file`): for flags and rules that people write.
pub fn own_name(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|row| row.name == name || row.aliases.contains(&name)).map(|row| row.name)
}

/// Why a registry could not be made.
#[derive(Debug, Error)]
pub enum RegistryError {
    #[error(
        "the workspace folder {path} cannot be used: {source}; start in a folder that exists, or name one with --cwd"
    )]
    Workspace { path: String, source: io::Error },
    #[error("there is no tool named {name}; the tools are {known}")]
    UnknownTool { name: String, known: String },
}

/// The built-in tools bound to a workspace.
pub struct ToolRegistry {
    rows: Vec<Row>,
    scope: Arc<Scope>,
}

impl ToolRegistry {
    /// What a call needs that another program runs under the name of one of our tools. That program
    /// is not held back by the bounds of the workspace, as our own tools are.
    pub fn requirement_elsewhere(&self, call: &ToolCall) -> Requirement {
        let mut requirement =
            elsewhere::requirement(&self.scope.workspace, call, self.requirement(call));
        self.scope.redactor.redact_in_place(&mut requirement.grant.words);
        requirement
    }

    /// All built-in tools, bound to this folder. What they return and stream passes the redactor.
    pub fn new(workspace: &Path, redactor: Redactor) -> Result<Self, RegistryError> {
        let bound = Workspace::new(workspace).map_err(|source| RegistryError::Workspace {
            path: workspace.display().to_string(),
            source,
        })?;
        Ok(Self { rows: BUILT_IN.to_vec(), scope: Arc::new(Scope::new(bound, redactor)) })
    }

    /// Only these tools are offered and run. Takes Claude Code's names too.
    pub fn only<S: AsRef<str>>(
        mut self,
        names: impl IntoIterator<Item = S>,
    ) -> Result<Self, RegistryError> {
        let mut kept: Vec<&'static str> = Vec::new();
        for name in names {
            let name = name.as_ref();
            kept.push(own_name(name).ok_or_else(|| RegistryError::UnknownTool {
                name: name.to_owned(),
                known: self.known(),
            })?);
        }
        self.rows.retain(|row| kept.contains(&row.name));
        Ok(self)
    }

    /// Calls come under a tool's own name only: rules and grants must never see two.
    fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    fn known(&self) -> String {
        self.rows.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
    }

    /// Reads may run beside each other: none changes what another sees.
    fn is_read(&self, call: &ToolCall) -> bool {
        self.row(&call.name).is_some_and(|row| row.level == PermissionLevel::ReadOnly)
    }

    /// Runs one call from start to end. The future owns all it needs.
    fn run(&self, call: ToolCall, cx: &TurnContext) -> BoxFuture<'static, ToolOutcome> {
        let work = if let Some(row) = self.row(&call.name) {
            let context = CallContext {
                id: call.id.clone(),
                sink: Arc::clone(&cx.sink),
                cancel: cx.cancel.clone(),
            };
            (row.run)(Arc::clone(&self.scope), call.input.clone(), context)
        } else {
            let meant = own_name(&call.name).filter(|name| self.row(name).is_some());
            let hint = meant.map_or_else(
                || format!("the tools are {}", self.known()),
                |name| format!("call {name} instead"),
            );
            let message = format!("there is no tool named {}; {hint}", call.name);
            async move { ToolOutcome::error(message) }.boxed()
        };
        let (sink, redactor) = (Arc::clone(&cx.sink), self.scope.redactor.clone());
        async move {
            let started = Instant::now();
            sink.emit(TuiEvent::ToolStarted {
                iteration: call.iteration,
                id: call.id.clone(),
                name: call.name.clone(),
                input: redactor.redact(&call.input).into_owned(),
            });
            let done = AssertUnwindSafe(work).catch_unwind().await;
            let mut outcome = done.unwrap_or_else(|_| {
                ToolOutcome::error(format!(
                    "{} failed inside, which is a fault of this program; nothing is known about what it did. Try another way",
                    call.name
                ))
            });
            redact_outcome(&redactor, &mut outcome);
            outcome.elapsed = started.elapsed();
            sink.emit(TuiEvent::ToolEnded {
                id: call.id,
                is_error: outcome.is_error,
                elapsed: outcome.elapsed,
            });
            outcome
        }
        .boxed()
    }

    async fn run_batch(&self, calls: Vec<ToolCall>, cx: &TurnContext) -> Vec<ToolOutcome> {
        let mut outcomes = Vec::with_capacity(calls.len());
        let mut waiting = calls.into_iter().peekable();
        while let Some(call) = waiting.next() {
            if cx.cancel.is_cancelled() {
                outcomes.push(ToolOutcome::error(NOT_RUN));
                continue;
            }
            let mut beside = vec![self.run_if_read(call, cx)];
            while matches!(beside.last(), Some(Started::Read(_)))
                && let Some(next) = waiting.next_if(|next| self.is_read(next))
            {
                beside.push(self.run_if_read(next, cx));
            }
            let running = beside.into_iter().map(|(Started::Read(run) | Started::Other(run))| run);
            outcomes.extend(join_all(running).await);
        }
        outcomes
    }

    fn run_if_read(&self, call: ToolCall, cx: &TurnContext) -> Started {
        if self.is_read(&call) {
            Started::Read(self.run(call, cx))
        } else {
            Started::Other(self.run(call, cx))
        }
    }
}

/// A call about to run: beside others, or alone.
enum Started {
    Read(BoxFuture<'static, ToolOutcome>),
    Other(BoxFuture<'static, ToolOutcome>),
}

impl ToolExecutor for ToolRegistry {
    fn specs(&self) -> Vec<ToolSpec> {
        let mut specs: Vec<ToolSpec> = self.rows.iter().map(|row| (row.spec)()).collect();
        specs.sort_by(|a, b| a.name.cmp(&b.name));
        specs
    }

    fn requirement(&self, call: &ToolCall) -> Requirement {
        let mut requirement = match self.row(&call.name) {
            Some(row) => (row.requirement)(&self.scope, &call.input),
            None => Requirement {
                level: PermissionLevel::DangerFullAccess,
                always_ask: None,
                grant: Grant {
                    key: format!("unknown:{}", call.name),
                    words: format!("the unknown tool {}", call.name),
                },
            },
        };
        self.scope.redactor.redact_in_place(&mut requirement.grant.words);
        requirement
    }

    fn preview(&self, call: &ToolCall) -> Option<String> {
        let mut diff = (self.row(&call.name)?.preview)(&self.scope, &call.input)?;
        self.scope.redactor.redact_in_place(&mut diff);
        Some(diff)
    }

    fn execute_batch<'a>(
        &'a mut self,
        calls: Vec<ToolCall>,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, Vec<ToolOutcome>> {
        self.run_batch(calls, cx).boxed()
    }
}

fn redact_outcome(redactor: &Redactor, outcome: &mut ToolOutcome) {
    redactor.redact_in_place(&mut outcome.output);
    match &mut outcome.facts {
        Some(ToolFacts::Diff { path, diff, .. }) => {
            redactor.redact_in_place(path);
            redactor.redact_in_place(diff);
        }
        Some(ToolFacts::Read { path, .. }) => redactor.redact_in_place(path),
        Some(ToolFacts::Todo { items }) => {
            for item in items {
                redactor.redact_in_place(&mut item.content);
                redactor.redact_in_place(&mut item.active_form);
            }
        }
        Some(ToolFacts::Command { .. } | ToolFacts::Matches { .. } | ToolFacts::Denied) | None => {}
    }
}

#[cfg(test)]
mod tests;
