//! Hooks around tool calls. The runner decides nothing itself: the runtime obeys what it returns.

use futures_util::future::BoxFuture;

use crate::context::TurnContext;
use crate::tools::{ToolCall, ToolOutcome};

/// The moments at which hooks run. Names as in claw-code and Claude Code settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookEvent {
    PreToolUse,
    PostToolUse,
    PostToolUseFailure,
}

/// What the hooks before a tool call decided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PreToolOutcome {
    /// Replaces the input (JSON text).
    pub updated_input: Option<String>,
    /// The call is denied, for this reason.
    pub denied: Option<String>,
    /// Text for the model, appended to the tool's result.
    pub feedback: Vec<String>,
}

/// What the hooks after a tool call had to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PostToolOutcome {
    pub feedback: Vec<String>,
}

/// Runs hooks. Emits `HookStarted` and `HookCompleted` or `HookCancelled` itself. A moment without
/// hooks leaves everything as it is.
pub trait HookRunner: Send {
    fn before_tool<'a>(
        &'a mut self,
        _call: &'a ToolCall,
        _cx: &'a TurnContext,
    ) -> BoxFuture<'a, PreToolOutcome> {
        Box::pin(async { PreToolOutcome::default() })
    }

    fn after_tool<'a>(
        &'a mut self,
        _call: &'a ToolCall,
        _outcome: &'a ToolOutcome,
        _cx: &'a TurnContext,
    ) -> BoxFuture<'a, PostToolOutcome> {
        Box::pin(async { PostToolOutcome::default() })
    }
}

/// No hooks are configured.
pub struct NoHooks;

impl HookRunner for NoHooks {}
