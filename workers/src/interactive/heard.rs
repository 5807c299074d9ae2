//! Hook records in the words of the protocol, and the live facts in them.

use crate::fact::Fact;
use crate::hooks::record::{HookEvent, HookRecord};
use crate::protocol::HookSeen;

/// What the machine is shown of a hook, and the fact that comes along.
pub(super) fn heard(record: &HookRecord) -> (HookSeen, Option<Fact>) {
    let prompt_id = record.prompt_id.clone();
    // What a sub-agent does is a sign of life; its story is told by its own transcript.
    if record.agent_id.is_some() {
        return (HookSeen::Other, None);
    }
    match &record.event {
        HookEvent::SessionStart { source, .. } => (
            HookSeen::SessionStart {
                session_id: record.session_id.clone(),
                source: source.clone(),
            },
            None,
        ),
        HookEvent::SessionEnd { reason } => (HookSeen::SessionEnd { reason: reason.clone() }, None),
        HookEvent::UserPromptSubmit { prompt } => {
            (HookSeen::UserPromptSubmit { prompt_id, prompt: prompt.clone() }, None)
        }
        HookEvent::PreToolUse { tool, tool_use_id } => (
            HookSeen::PreToolUse { prompt_id },
            Some(Fact::ToolStarted { id: tool_use_id.clone(), input: tool.input.clone() }),
        ),
        HookEvent::PostToolUse { tool_use_id, duration, .. } => (
            HookSeen::PostToolUse { prompt_id },
            Some(Fact::ToolEnded { id: tool_use_id.clone(), is_error: false, elapsed: *duration }),
        ),
        HookEvent::PostToolUseFailure { tool_use_id, duration, .. } => (
            HookSeen::PostToolUse { prompt_id },
            Some(Fact::ToolEnded { id: tool_use_id.clone(), is_error: true, elapsed: *duration }),
        ),
        HookEvent::Stop { last_assistant_message, .. } => {
            (HookSeen::Stop { prompt_id, last_message: last_assistant_message.clone() }, None)
        }
        HookEvent::StopFailure { error, details, last_assistant_message } => (
            HookSeen::StopFailure {
                prompt_id,
                class: error.clone(),
                text: last_assistant_message.clone().unwrap_or_default(),
                details: details.clone(),
            },
            None,
        ),
        HookEvent::PreCompact { automatic } => {
            (HookSeen::PreCompact { prompt_id, automatic: *automatic }, None)
        }
        HookEvent::PostCompact { automatic, .. } => {
            (HookSeen::PostCompact { prompt_id, automatic: *automatic }, None)
        }
        HookEvent::Notification { kind, .. } => {
            (HookSeen::Notification { kind: kind.clone().unwrap_or_default() }, None)
        }
        HookEvent::MessageDisplay { message_id, index, last, delta, .. } => (
            HookSeen::Other,
            Some(Fact::Lines {
                display: message_id.clone(),
                index: *index,
                text: delta.clone(),
                last: *last,
            }),
        ),
        HookEvent::PermissionRequest { .. }
        | HookEvent::PermissionDenied { .. }
        | HookEvent::SubagentStart
        | HookEvent::SubagentStop { .. }
        | HookEvent::Unknown { .. } => (HookSeen::Other, None),
    }
}
