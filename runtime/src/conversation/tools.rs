//! One batch of tool calls in three phases: hooks and permission in order; the allowed calls as one
//! batch; hooks and session updates in order.

use super::{ConversationRuntime, TurnSummary};
use crate::api::ApiClient;
use crate::context::TurnContext;
use crate::event::TuiEvent;
use crate::permissions::{
    Asker, Digest, PermissionPromptDecision, PermissionRequest, PermissionVerdict, RequestId,
    RequestKind,
};
use crate::session::{ContentBlock, ConversationMessage, MessageRole, unanswered_tool_uses};
use crate::tools::{ToolCall, ToolExecutor, ToolOutcome};

const INTERRUPTED: &str = "interrupted before it ran";

/// A call on its way through the phases.
struct PendingTool {
    call: ToolCall,
    /// Why it may not run; none when it may.
    denied: Option<String>,
    feedback: Vec<String>,
    /// The person changed its input.
    changed: bool,
}

/// How a call may run.
#[derive(PartialEq, Eq)]
enum Ran {
    AsCalled,
    /// With an input of the person's.
    Changed,
}

impl<C: ApiClient, T: ToolExecutor> ConversationRuntime<C, T> {
    /// Runs the calls and pushes one result for each, in order, whatever happens on the way.
    pub(super) async fn run_tools(
        &mut self,
        uses: Vec<(String, String, String)>,
        summary: &mut TurnSummary,
        cx: &TurnContext,
    ) {
        let mut pending = Vec::with_capacity(uses.len());
        for (id, name, input) in uses {
            let call = ToolCall { id, name, input, iteration: summary.iterations };
            pending.push(self.prepare(call, cx).await);
        }
        let allowed: Vec<ToolCall> = pending
            .iter()
            .filter(|tool| tool.denied.is_none())
            .map(|tool| tool.call.clone())
            .collect();
        let mut outcomes = if allowed.is_empty() {
            Vec::new().into_iter()
        } else {
            self.tools.execute_batch(allowed, cx).await.into_iter()
        };
        for tool in pending {
            let outcome = match &tool.denied {
                Some(reason) => ToolOutcome::denied(reason.clone()),
                None => outcomes
                    .next()
                    .unwrap_or_else(|| ToolOutcome::error("the tool returned no result")),
            };
            self.record_result(tool, outcome, summary, cx).await;
        }
    }

    /// Phase 1: the hooks before the call, then permission for what they left of it.
    async fn prepare(&mut self, mut call: ToolCall, cx: &TurnContext) -> PendingTool {
        if cx.cancel.is_cancelled() {
            return denied(call, INTERRUPTED, Vec::new());
        }
        if !self.specs.iter().any(|spec| spec.name == call.name) {
            // The model made the name up: nothing could run, so there is nothing to ask.
            let known: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
            let reason = format!("there is no tool {}; one of: {}", call.name, known.join(", "));
            return denied(call, &reason, Vec::new());
        }
        let hook = self.hooks.before_tool(&call, cx).await;
        if let Some(input) = hook.updated_input {
            call.input = input;
        }
        if let Some(reason) = hook.denied {
            return denied(call, &format!("denied by a hook: {reason}"), hook.feedback);
        }
        if cx.cancel.is_cancelled() {
            return denied(call, INTERRUPTED, hook.feedback);
        }
        match self.authorize(&mut call, cx).await {
            Ok(ran) => PendingTool {
                call,
                denied: None,
                feedback: hook.feedback,
                changed: ran == Ran::Changed,
            },
            Err(reason) => denied(call, &reason, hook.feedback),
        }
    }

    /// Permission for a call, which the person may change, or the reason why it has none.
    async fn authorize(&mut self, call: &mut ToolCall, cx: &TurnContext) -> Result<Ran, String> {
        let requirement = self.tools.requirement(call);
        let reason = match self.policy.verdict(&call.name, &requirement) {
            PermissionVerdict::Allow => return Ok(Ran::AsCalled),
            PermissionVerdict::Deny { reason } => return Err(reason),
            PermissionVerdict::Ask { reason } => reason,
        };
        let input = self.redactor.redact_values(&call.input).into_owned();
        let request = PermissionRequest {
            id: RequestId::next(),
            // An input that is not shown as it is cannot be given back changed.
            kind: RequestKind::Tool { editable: input == call.input },
            asker: Asker::default(),
            tool_use_id: call.id.clone(),
            tool_name: call.name.clone(),
            input,
            digest: Digest::of(&call.input),
            expires: None,
            current_mode: self.policy.mode(),
            required: requirement.level,
            reason,
            preview: self.tools.preview(call),
            grant: requirement.grant.clone(),
        };
        let can_be_granted = request.can_be_granted();
        match cx.prompter.decide(request, &cx.cancel).await {
            PermissionPromptDecision::AllowOnce => Ok(Ran::AsCalled),
            PermissionPromptDecision::AllowInput { input } => {
                call.input = input;
                Ok(Ran::Changed)
            }
            // Nothing that our tools ask is answered like this.
            PermissionPromptDecision::Answers(_) | PermissionPromptDecision::ApprovePlan { .. } => {
                Err("permission denied: the answer does not fit the question".to_owned())
            }
            PermissionPromptDecision::AllowForSession => {
                if can_be_granted {
                    self.policy.grant(&requirement.grant);
                }
                Ok(Ran::AsCalled)
            }
            PermissionPromptDecision::Deny { .. } if cx.cancel.is_cancelled() => {
                Err(INTERRUPTED.to_owned())
            }
            PermissionPromptDecision::Deny { reason: None } => {
                Err("permission denied by the person".to_owned())
            }
            PermissionPromptDecision::Deny { reason: Some(reason) } => {
                Err(format!("permission denied: {reason}"))
            }
        }
    }

    /// Phase 3: the hooks after the call, the result into the session, the event.
    async fn record_result(
        &mut self,
        tool: PendingTool,
        mut outcome: ToolOutcome,
        summary: &mut TurnSummary,
        cx: &TurnContext,
    ) {
        let ran = tool.denied.is_none();
        let mut feedback = tool.feedback;
        if ran && !cx.cancel.is_cancelled() {
            feedback.extend(self.hooks.after_tool(&tool.call, &outcome, cx).await.feedback);
        }
        for text in feedback {
            outcome.output.push_str("\n\n[hook] ");
            outcome.output.push_str(&text);
        }
        if tool.changed {
            // The model still sees the call as it made it.
            outcome.output.push_str("\n\n[person] this ran in place of the call: ");
            outcome.output.push_str(&tool.call.input);
        }
        summary.tool_calls += 1;
        self.push_result(&tool.call.id, &tool.call.name, &outcome, cx);
        cx.sink.emit(TuiEvent::ToolResult {
            iteration: summary.iterations,
            max_iterations: self.max_iterations,
            id: tool.call.id,
            name: tool.call.name,
            input: tool.call.input,
            outcome,
            denied: !ran,
        });
    }

    /// Gives every tool use at the end of the session that has no result an error result, so that
    /// the next request is valid.
    pub(super) fn answer_dangling_tool_uses(&mut self, reason: &str, cx: &TurnContext) {
        for (id, name) in unanswered_tool_uses(&self.session().messages) {
            let outcome = ToolOutcome::denied(reason);
            self.push_result(&id, &name, &outcome, cx);
            cx.sink.emit(TuiEvent::ToolResult {
                iteration: 0,
                max_iterations: self.max_iterations,
                id,
                name,
                input: "{}".to_owned(),
                outcome,
                denied: true,
            });
        }
    }

    fn push_result(&mut self, id: &str, name: &str, outcome: &ToolOutcome, cx: &TurnContext) {
        let block = ContentBlock::ToolResult {
            tool_use_id: id.to_owned(),
            tool_name: name.to_owned(),
            output: outcome.output.clone(),
            is_error: outcome.is_error,
            facts: outcome.facts.clone(),
        };
        self.push(ConversationMessage::new(MessageRole::Tool, vec![block]), cx);
    }
}

fn denied(call: ToolCall, reason: &str, feedback: Vec<String>) -> PendingTool {
    PendingTool { call, denied: Some(reason.to_owned()), feedback, changed: false }
}
