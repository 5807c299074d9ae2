//! Tools: what they are called with, what they return, and who runs them.
//!
//! Adding a tool: one file beside this one (a typed input struct, a `run`) and one row in
//! `registry.rs`.

mod bash;
mod edit_file;
mod elsewhere;
mod glob_search;
mod grep_search;
mod input;
mod protected;
mod read_file;
pub mod registry;
mod row;
mod scope;
mod text_file;
mod todo_write;
mod walk;
mod workspace;
mod write_file;

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::TurnContext;
use crate::permissions::PermissionLevel;

pub use registry::{RegistryError, ToolRegistry, own_name};

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON schema of the input, keys in a stable order.
    pub input_schema: Value,
}

/// One call, with the effective input (after hooks).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// JSON text as the model wrote it or a hook replaced it.
    pub input: String,
    /// 1-based iteration of the turn loop, for events.
    pub iteration: usize,
}

/// What came of a call. `output` is what the model reads.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    pub output: String,
    pub is_error: bool,
    pub facts: Option<ToolFacts>,
    pub elapsed: Duration,
}

impl ToolOutcome {
    /// An error result with this text.
    pub fn error(output: impl Into<String>) -> Self {
        Self { output: output.into(), is_error: true, facts: None, elapsed: Duration::ZERO }
    }

    /// The result of a call that did not run, for this reason.
    pub fn denied(reason: impl Into<String>) -> Self {
        Self { facts: Some(ToolFacts::Denied), ..Self::error(reason) }
    }

    /// A good result with this text.
    pub fn ok(output: impl Into<String>) -> Self {
        Self { output: output.into(), is_error: false, facts: None, elapsed: Duration::ZERO }
    }
}

/// Facts about a result that a UI shows and the model need not read. Stored with the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToolFacts {
    /// A command ran.
    Command {
        exit_code: Option<i32>,
        signal: Option<i32>,
        timed_out: bool,
        cancelled: bool,
        /// Bytes of output that were left out of the middle.
        omitted_bytes: u64,
        /// Lines that the command itself wrote, also those that were left out; none in results
        /// from before they were counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines: Option<u64>,
    },
    /// A file was read: lines `first_line..first_line + lines` of `total_lines`.
    Read { path: String, first_line: u64, lines: u64, total_lines: u64 },
    /// A file was changed. `diff` is unified, without file headers, for display.
    Diff { path: String, diff: String, added: u64, removed: u64, created: bool },
    /// A search: matches in files.
    Matches { matches: u64, files: u64, truncated: bool },
    /// The todo list as it is now.
    Todo { items: Vec<TodoItem> },
    /// It did not run: permission, a rule or a hook was against it, or the turn ended before.
    Denied,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TodoItem {
    /// What is to be done, in the imperative.
    pub content: String,
    /// The same in the present continuous, shown while it is in progress.
    #[serde(rename = "activeForm", default)]
    pub active_form: String,
    pub status: TodoStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

/// What a call needs, decided from its effective input, before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    pub level: PermissionLevel,
    /// Always ask, whatever the mode, and why (protected paths).
    pub always_ask: Option<String>,
    /// What "for this session" would allow: an opaque key compared for equality, and words for it.
    pub grant: Grant,
}

/// The scope of a "for this session" answer, e.g. key `bash:cargo test`, words "`cargo test`".
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    pub key: String,
    pub words: String,
}

/// Runs tools. Emits `ToolStarted`, `ToolOutput` and `ToolEnded` itself; the runtime emits
/// `ToolResult` once post-hooks have run.
pub trait ToolExecutor: Send {
    /// The tools on offer, sorted by name.
    fn specs(&self) -> Vec<ToolSpec>;

    /// What this call needs. Unknown tools need danger-full-access (and will fail when run).
    fn requirement(&self, call: &ToolCall) -> Requirement;

    /// A unified diff of what an edit would do, for the permission modal. None where there is none.
    fn preview(&self, call: &ToolCall) -> Option<String>;

    /// Runs the calls: read-only ones in parallel, the others in order. Returns one outcome per
    /// call, in the order of the calls, also when cancelled.
    fn execute_batch<'a>(
        &'a mut self,
        calls: Vec<ToolCall>,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, Vec<ToolOutcome>>;
}

impl ToolExecutor for Box<dyn ToolExecutor> {
    fn specs(&self) -> Vec<ToolSpec> {
        (**self).specs()
    }

    fn requirement(&self, call: &ToolCall) -> Requirement {
        (**self).requirement(call)
    }

    fn preview(&self, call: &ToolCall) -> Option<String> {
        (**self).preview(call)
    }

    fn execute_batch<'a>(
        &'a mut self,
        calls: Vec<ToolCall>,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, Vec<ToolOutcome>> {
        (**self).execute_batch(calls, cx)
    }
}
