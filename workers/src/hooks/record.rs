//! What a hook told, typed. Pure: it reads a payload and nothing else.
//!
//! Lenient where a version may differ (unknown events, missing extras, other types of extras),
//! strict where a wrong guess would mix up sessions or tools. Errors name a field, never a value.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};
use thiserror::Error;

/// One hook's payload.
#[derive(Debug, Clone, PartialEq)]
pub struct HookRecord {
    pub session_id: String,
    pub transcript_path: Option<PathBuf>,
    pub cwd: Option<PathBuf>,
    /// The prompt that it belongs to; none before the first one.
    pub prompt_id: Option<String>,
    pub permission_mode: Option<String>,
    /// `low`, `medium`, `high`, ...
    pub effort: Option<String>,
    /// Set inside a sub-agent, and for its start and end.
    pub agent_id: Option<String>,
    pub agent_type: Option<String>,
    pub event: HookEvent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum HookEvent {
    SessionStart {
        /// `startup`, `resume`, `clear`, `compact`, `fork`.
        source: String,
        model: Option<String>,
    },
    SessionEnd {
        /// `prompt_input_exit`, `clear`, `other`, ...
        reason: String,
    },
    UserPromptSubmit {
        prompt: String,
    },
    PreToolUse {
        tool: ToolUse,
        tool_use_id: String,
    },
    PermissionRequest {
        tool: ToolUse,
        /// JSON text, where the CLI offers any.
        suggestions: Option<String>,
    },
    PermissionDenied {
        tool: ToolUse,
        tool_use_id: Option<String>,
    },
    PostToolUse {
        tool: ToolUse,
        tool_use_id: String,
        /// JSON text.
        response: Option<String>,
        duration: Option<Duration>,
    },
    PostToolUseFailure {
        tool: ToolUse,
        tool_use_id: String,
        error: String,
        is_interrupt: bool,
        duration: Option<Duration>,
    },
    Notification {
        message: String,
        /// `permission_prompt`, `idle_prompt`, ...
        kind: Option<String>,
    },
    Stop {
        /// The turn goes on because of a hook.
        stop_hook_active: bool,
        last_assistant_message: Option<String>,
        background_tasks: Vec<BackgroundTask>,
    },
    StopFailure {
        /// The CLI's own class, e.g. `rate_limit`.
        error: String,
        details: Option<String>,
        last_assistant_message: Option<String>,
    },
    SubagentStart,
    SubagentStop {
        transcript_path: Option<PathBuf>,
        last_assistant_message: Option<String>,
        background_tasks: Vec<BackgroundTask>,
    },
    PreCompact {
        automatic: bool,
    },
    PostCompact {
        automatic: bool,
        summary: Option<String>,
    },
    MessageDisplay {
        turn_id: Option<String>,
        message_id: String,
        index: u64,
        last: bool,
        delta: String,
    },
    /// An event that we do not know, by its name.
    Unknown {
        name: String,
    },
}

/// A tool and what it is called with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    /// The CLI's own name of the tool.
    pub name: String,
    /// JSON text, keys in the CLI's order.
    pub input: String,
}

/// Work that goes on after the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundTask {
    pub id: String,
    /// `subagent`, ...
    pub kind: Option<String>,
    pub status: Option<String>,
    pub description: Option<String>,
}

/// Why a payload is not a record.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordError {
    #[error("a hook sent something that is not a JSON object")]
    NotAnObject,
    #[error("a hook record has no {0}")]
    Missing(&'static str),
}

impl HookRecord {
    /// Reads one payload.
    pub fn parse(payload: &[u8]) -> Result<Self, RecordError> {
        let fields: Map<String, Value> =
            serde_json::from_slice(payload).map_err(|_| RecordError::NotAnObject)?;
        let fields = Fields(fields);
        let name = fields.required("hook_event_name")?;
        Ok(Self {
            session_id: fields.required("session_id")?,
            transcript_path: fields.text("transcript_path").map(PathBuf::from),
            cwd: fields.text("cwd").map(PathBuf::from),
            prompt_id: fields.text("prompt_id"),
            permission_mode: fields.text("permission_mode"),
            effort: fields.effort(),
            agent_id: fields.text("agent_id"),
            agent_type: fields.text("agent_type"),
            event: fields.event(name)?,
        })
    }
}

/// The fields of a payload. Extras of another type than we know count as missing.
struct Fields(Map<String, Value>);

impl Fields {
    fn event(&self, name: String) -> Result<HookEvent, RecordError> {
        Ok(match name.as_str() {
            "SessionStart" => {
                let source = self.text("source").unwrap_or_default();
                HookEvent::SessionStart { source, model: self.text("model") }
            }
            "SessionEnd" => {
                HookEvent::SessionEnd { reason: self.text("reason").unwrap_or_default() }
            }
            "UserPromptSubmit" => HookEvent::UserPromptSubmit { prompt: self.required("prompt")? },
            "Notification" => HookEvent::Notification {
                message: self.text("message").unwrap_or_default(),
                kind: self.text("notification_type"),
            },
            "Stop" => HookEvent::Stop {
                stop_hook_active: self.flag("stop_hook_active"),
                last_assistant_message: self.text("last_assistant_message"),
                background_tasks: self.background_tasks(),
            },
            "StopFailure" => HookEvent::StopFailure {
                error: self.text("error").unwrap_or_else(|| "unknown".to_owned()),
                details: self.text("error_details"),
                last_assistant_message: self.text("last_assistant_message"),
            },
            "SubagentStart" => HookEvent::SubagentStart,
            "SubagentStop" => HookEvent::SubagentStop {
                transcript_path: self.text("agent_transcript_path").map(PathBuf::from),
                last_assistant_message: self.text("last_assistant_message"),
                background_tasks: self.background_tasks(),
            },
            "PreCompact" => HookEvent::PreCompact { automatic: self.automatic() },
            "PostCompact" => HookEvent::PostCompact {
                automatic: self.automatic(),
                summary: self.text("compact_summary"),
            },
            "MessageDisplay" => HookEvent::MessageDisplay {
                turn_id: self.text("turn_id"),
                message_id: self.required("message_id")?,
                index: self.number("index").unwrap_or_default(),
                last: self.flag("final"),
                delta: self.text("delta").unwrap_or_default(),
            },
            _ => return self.tool_event(name),
        })
    }

    fn tool_event(&self, name: String) -> Result<HookEvent, RecordError> {
        Ok(match name.as_str() {
            "PreToolUse" => {
                HookEvent::PreToolUse { tool: self.tool()?, tool_use_id: self.tool_use_id()? }
            }
            "PermissionRequest" => HookEvent::PermissionRequest {
                tool: self.tool()?,
                suggestions: self.json("permission_suggestions"),
            },
            "PermissionDenied" => HookEvent::PermissionDenied {
                tool: self.tool()?,
                tool_use_id: self.text("tool_use_id"),
            },
            "PostToolUse" => HookEvent::PostToolUse {
                tool: self.tool()?,
                tool_use_id: self.tool_use_id()?,
                response: self.json("tool_response"),
                duration: self.duration(),
            },
            "PostToolUseFailure" => HookEvent::PostToolUseFailure {
                tool: self.tool()?,
                tool_use_id: self.tool_use_id()?,
                error: self.text("error").unwrap_or_default(),
                is_interrupt: self.flag("is_interrupt"),
                duration: self.duration(),
            },
            _ => HookEvent::Unknown { name },
        })
    }

    fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(str::to_owned)
    }

    /// A text without which the record means nothing. Empty counts as missing, but for prompts.
    fn required(&self, name: &'static str) -> Result<String, RecordError> {
        let text = self.text(name).filter(|text| name == "prompt" || !text.is_empty());
        text.ok_or(RecordError::Missing(name))
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    fn duration(&self) -> Option<Duration> {
        self.number("duration_ms").map(Duration::from_millis)
    }

    fn json(&self, name: &str) -> Option<String> {
        self.0.get(name).filter(|value| !value.is_null()).map(Value::to_string)
    }

    /// An object with a level in the versions that we know, documented as a word.
    fn effort(&self) -> Option<String> {
        let effort = self.0.get("effort")?;
        effort.get("level").unwrap_or(effort).as_str().map(str::to_owned)
    }

    fn automatic(&self) -> bool {
        self.0.get("trigger").and_then(Value::as_str) == Some("auto")
    }

    fn tool(&self) -> Result<ToolUse, RecordError> {
        let input = self.json("tool_input").unwrap_or_else(|| "{}".to_owned());
        Ok(ToolUse { name: self.required("tool_name")?, input })
    }

    fn tool_use_id(&self) -> Result<String, RecordError> {
        self.required("tool_use_id")
    }

    fn background_tasks(&self) -> Vec<BackgroundTask> {
        let tasks = self.0.get("background_tasks").and_then(Value::as_array);
        let task = |value: &Value| {
            let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
            Some(BackgroundTask {
                id: text("id")?,
                kind: text("type"),
                status: text("status"),
                description: text("description"),
            })
        };
        tasks.into_iter().flatten().filter_map(task).collect()
    }
}

#[cfg(test)]
mod tests;
