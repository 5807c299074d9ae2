//! One line of the CLI's standard output, as what it means. Keeps only what later lines of the same
//! turn refer to; knows no process and no time.

use std::collections::HashMap;
use std::time::Duration;

use claw_runtime::session::ContentBlock;
use claw_runtime::usage::TokenUsage;
use serde_json::Value;
use thiserror::Error;

use crate::api_event::ApiEvents;
use crate::fact::{AgentEnd, DeniedBy, Fact, FailureKind, PromptSource};
use crate::transcript::record::{
    agent, content, failure, owned, quota, text, tool_facts, usage, words,
};

/// A line that is not the protocol.
#[derive(Debug, Error)]
#[error("a line is not a JSON object: {0}")]
pub struct CodecError(String);

/// What a line of the CLI says.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamMessage {
    /// Facts of the turn, in order; may be none.
    Facts(Vec<Fact>),
    /// A turn begins.
    Init { session_id: String, version: String },
    /// What it does now, e.g. `requesting` or `compacting`.
    Status { status: Option<String> },
    /// One of our prompts went to the model.
    Replayed { text: String },
    /// May this tool run?
    Question {
        request_id: String,
        tool_use_id: Option<String>,
        tool_name: String,
        input: String,
        /// The sub-agent that asks.
        agent: Option<String>,
    },
    /// The CLI takes a question back.
    QuestionWithdrawn { request_id: String },
    /// A request of a kind that we do not answer.
    OtherRequest { request_id: String, kind: String },
    /// The answer to a request of ours; the error in its own words.
    Answer { request_id: String, error: Option<String> },
    /// The turn is over.
    Result(Outcome),
    /// Something that is not for us.
    Unknown { kind: String },
}

/// How the CLI says a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Its last text.
    pub text: Option<String>,
    /// `error_during_execution`, also after an interrupt.
    pub broken: bool,
    /// An `ApiFailure` when it ended with one.
    pub failure: Option<Box<Fact>>,
}

/// A sub-agent that runs.
struct Agent {
    tool_use_id: Option<String>,
    background: bool,
}

/// Reads the lines of one process.
#[derive(Default)]
pub struct Decoder {
    /// The message that streams.
    live: ApiEvents,
    /// Inputs of calls without a result.
    inputs: HashMap<String, String>,
    /// Sub-agents that run, by the id of their task.
    agents: HashMap<String, Agent>,
    /// This version has lines about sub-agents.
    tells_tasks: bool,
    failure: Option<Fact>,
}

impl Decoder {
    /// What this line says.
    pub fn decode(&mut self, line: &str) -> Result<StreamMessage, CodecError> {
        let value: Value = match serde_json::from_str(line) {
            Ok(value @ Value::Object(_)) => value,
            Ok(_) => return Err(CodecError("not an object".to_owned())),
            Err(error) => return Err(CodecError(error.to_string())),
        };
        Ok(match text(&value, "type") {
            "system" => self.system(&value),
            "stream_event" => StreamMessage::Facts(self.event(&value)),
            "assistant" => StreamMessage::Facts(self.assistant(&value)),
            "user" => self.user(&value),
            "control_request" => question(&value),
            "control_cancel_request" => StreamMessage::QuestionWithdrawn {
                request_id: text(&value, "request_id").to_owned(),
            },
            "control_response" => answer(&value["response"]),
            "rate_limit_event" => StreamMessage::Facts(
                quota(&value["rate_limit_info"]).map(Fact::Quota).into_iter().collect(),
            ),
            "result" => StreamMessage::Result(self.result(&value)),
            other => StreamMessage::Unknown { kind: other.to_owned() },
        })
    }

    fn system(&mut self, value: &Value) -> StreamMessage {
        let facts = match text(value, "subtype") {
            "init" => {
                return StreamMessage::Init {
                    session_id: text(value, "session_id").to_owned(),
                    version: text(value, "claude_code_version").to_owned(),
                };
            }
            "status" => return StreamMessage::Status { status: owned(value, "status") },
            "api_retry" => vec![retry(value)],
            "compact_boundary" => vec![compacted(value)],
            "informational" => vec![Fact::Notice { text: text(value, "content").to_owned() }],
            "local_command_output" => {
                vec![Fact::CommandOutput { text: text(value, "content").to_owned() }]
            }
            "task_started" => self.task_started(value).into_iter().collect(),
            "task_progress" => self.task_progress(value).into_iter().collect(),
            "task_notification" => self.task_ended(value).into_iter().collect(),
            other => return StreamMessage::Unknown { kind: format!("system/{other}") },
        };
        StreamMessage::Facts(facts)
    }

    /// A raw event of the API.
    fn event(&mut self, value: &Value) -> Vec<Fact> {
        if !value["parent_tool_use_id"].is_null() {
            return Vec::new();
        }
        let event = &value["event"];
        let fact = self.live.read_value(event);
        let usage = self.live.message().and_then(|message| {
            let usage = counted(&event["usage"])?;
            Some(Fact::Usage { message: message.to_owned(), usage })
        });
        fact.into_iter().chain(usage).collect()
    }

    /// Finished blocks.
    fn assistant(&mut self, value: &Value) -> Vec<Fact> {
        let message = &value["message"];
        if let Some(parent) = value["parent_tool_use_id"].as_str() {
            return progress(parent, message);
        }
        if value["error"].is_string() || value["isApiErrorMessage"] == true {
            let failure = failure(value);
            self.failure = Some(failure.clone());
            return vec![failure];
        }
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let id = text(message, "id");
        let facts = blocks.iter().filter_map(content).map(|content| {
            if let ContentBlock::ToolUse { id, input, .. } = &content {
                self.inputs.insert(id.clone(), input.clone());
            }
            Fact::Block {
                message: id.to_owned(),
                block: None,
                content,
                model: owned(message, "model"),
                usage: usage(&message["usage"]),
                stop_reason: owned(message, "stop_reason"),
                aborted: value["isAbortedMidStream"] == true,
            }
        });
        facts.collect()
    }

    /// Results of tools, prompts that were taken, and the CLI's own words to the model.
    fn user(&mut self, value: &Value) -> StreamMessage {
        if !value["parent_tool_use_id"].is_null() {
            return StreamMessage::Facts(Vec::new());
        }
        let content = &value["message"]["content"];
        if value["isReplay"] == true {
            return StreamMessage::Replayed { text: words(content) };
        }
        let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
        let results: Vec<&Value> =
            blocks.iter().filter(|block| text(block, "type") == "tool_result").collect();
        let alone = results.len() == 1;
        let mut facts: Vec<Fact> =
            results.into_iter().flat_map(|block| self.tool_result(block, value, alone)).collect();
        if facts.is_empty() {
            facts.push(spoken_by_cli(words(content)));
        }
        StreamMessage::Facts(facts)
    }

    /// `alone`: the structured result of the line belongs to this block.
    fn tool_result(&mut self, block: &Value, value: &Value, alone: bool) -> Vec<Fact> {
        let id = text(block, "tool_use_id");
        self.inputs.remove(id);
        let metas = value["tool_result_meta"].as_array().map(Vec::as_slice).unwrap_or_default();
        let meta = metas.iter().find(|meta| text(meta, "id") == id).unwrap_or(&Value::Null);
        let denied = match text(meta, "non_execution_kind") {
            "permission-rule" => Some(DeniedBy::Rule),
            "user-rejected" => Some(DeniedBy::Person),
            _ => None,
        };
        let structured = if alone { &value["tool_use_result"] } else { &Value::Null };
        let output = words(&block["content"]);
        let mut facts = Vec::new();
        facts.extend(agent(structured, id, &output).filter(|fact| self.is_news(fact)));
        facts.push(Fact::ToolResult {
            id: id.to_owned(),
            output,
            is_error: block["is_error"] == true,
            facts: tool_facts(structured),
            denied,
        });
        facts
    }

    /// The end and the start of a sub-agent are said by its result and by a line of their own.
    fn is_news(&mut self, fact: &Fact) -> bool {
        match fact {
            Fact::AgentSpawned { agent, tool_use_id, background, .. } => {
                let new = Agent { tool_use_id: tool_use_id.clone(), background: *background };
                let known = self.agents.insert(agent.clone(), new);
                known.is_none_or(|known| !known.background && *background)
            }
            Fact::AgentDone { agent, .. } => {
                self.agents.remove(agent).is_some() || !self.tells_tasks
            }
            _ => true,
        }
    }

    fn task_started(&mut self, value: &Value) -> Option<Fact> {
        let (task, call) = (text(value, "task_id"), owned(value, "tool_use_id"));
        if text(value, "task_type") == "local_bash" {
            let id = call?;
            let input = self.inputs.get(&id)?.clone();
            return Some(Fact::ToolStarted { id, input });
        }
        self.tells_tasks = true;
        let input = call.as_ref().and_then(|call| self.inputs.get(call));
        let input: Option<Value> = input.and_then(|input| serde_json::from_str(input).ok());
        let asked = input.is_some_and(|input| input["run_in_background"] == true);
        let fact = Fact::AgentSpawned {
            agent: task.to_owned(),
            tool_use_id: call,
            kind: owned(value, "subagent_type").or_else(|| owned(value, "description")),
            // Older versions say it only in the call, or in its receipt.
            background: value["is_backgrounded"].as_bool().unwrap_or(asked),
        };
        self.is_news(&fact).then_some(fact)
    }

    fn task_progress(&self, value: &Value) -> Option<Fact> {
        let task = text(value, "task_id");
        let call = self.agents.get(task)?.tool_use_id.clone();
        let text = owned(value, "summary")
            .or_else(|| owned(value, "last_tool_name"))
            .or_else(|| owned(value, "description"))?;
        Some(Fact::AgentProgress { agent: task.to_owned(), tool_use_id: call, text })
    }

    fn task_ended(&mut self, value: &Value) -> Option<Fact> {
        let task = text(value, "task_id");
        let call = self.agents.remove(task)?.tool_use_id;
        let status = match text(value, "status") {
            "completed" => AgentEnd::Completed,
            "killed" | "stopped" => AgentEnd::Killed,
            "timed_out" => AgentEnd::TimedOut,
            _ => AgentEnd::Failed,
        };
        Some(Fact::AgentDone {
            agent: task.to_owned(),
            tool_use_id: call,
            status,
            summary: text(value, "summary").to_owned(),
        })
    }

    fn result(&mut self, value: &Value) -> Outcome {
        let said = owned(value, "result");
        let known = self.failure.take();
        let broken = text(value, "subtype") == "error_during_execution";
        let failed = value["is_error"] == true && !broken;
        let failure = failed.then(|| {
            let answered = status(&value["api_error_status"]);
            let mut failure = known.unwrap_or_else(|| Fact::ApiFailure {
                kind: kind_of_status(answered, text(value, "subtype")),
                status: answered,
                text: said.clone().unwrap_or_default(),
                details: None,
                quota: None,
            });
            // The record of a failure may leave out what only the result says.
            if let Fact::ApiFailure { status: missing @ None, .. } = &mut failure {
                *missing = answered;
            }
            Box::new(failure)
        });
        self.inputs.clear();
        Outcome { text: said, broken, failure }
    }
}

fn question(value: &Value) -> StreamMessage {
    let request_id = text(value, "request_id").to_owned();
    let request = &value["request"];
    match text(request, "subtype") {
        "can_use_tool" => StreamMessage::Question {
            request_id,
            tool_use_id: owned(request, "tool_use_id"),
            tool_name: text(request, "tool_name").to_owned(),
            agent: owned(request, "agent_id"),
            input: match &request["input"] {
                Value::Null => "{}".to_owned(),
                input => input.to_string(),
            },
        },
        kind => StreamMessage::OtherRequest { request_id, kind: kind.to_owned() },
    }
}

fn answer(response: &Value) -> StreamMessage {
    let failed = text(response, "subtype") == "error";
    StreamMessage::Answer {
        request_id: text(response, "request_id").to_owned(),
        error: failed.then(|| text(response, "error").to_owned()),
    }
}

/// The counts at the end of a message: only those that changed are said.
fn counted(value: &Value) -> Option<TokenUsage> {
    let count = |key: &str| value[key].as_u64().unwrap_or(0);
    let usage = TokenUsage {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        cache_creation_input_tokens: count("cache_creation_input_tokens"),
        cache_read_input_tokens: count("cache_read_input_tokens"),
    };
    (usage != TokenUsage::default()).then_some(usage)
}

/// What a sub-agent did last.
fn progress(parent: &str, message: &Value) -> Vec<Fact> {
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let said = blocks.iter().filter_map(|block| match text(block, "type") {
        "text" => owned(block, "text").filter(|text| !text.trim().is_empty()),
        "tool_use" => owned(block, "name"),
        _ => None,
    });
    let progress = said.map(|text| Fact::AgentProgress {
        agent: parent.to_owned(),
        tool_use_id: Some(parent.to_owned()),
        text,
    });
    progress.collect()
}

/// Words in the user's place that no person wrote. The marks of an interrupt are constants of the
/// CLI, and are taken for marks only as a whole.
fn spoken_by_cli(text: String) -> Fact {
    match text.as_str() {
        "[Request interrupted by user]" => Fact::Interrupted { in_tool: false },
        "[Request interrupted by user for tool use]" => Fact::Interrupted { in_tool: true },
        _ => Fact::Prompt { prompt_id: None, text, source: PromptSource::Hidden },
    }
}

fn retry(value: &Value) -> Fact {
    let number = |key: &str| value[key].as_u64().unwrap_or(0);
    let count = |key: &str| u32::try_from(number(key)).unwrap_or(u32::MAX);
    let status = status(&value["error_status"]).map(|status| format!(" ({status})"));
    Fact::Retry {
        attempt: count("attempt"),
        max_attempts: count("max_retries"),
        wait: Duration::from_millis(number("retry_delay_ms")),
        reason: text(value, "error").replace('_', " ") + &status.unwrap_or_default(),
    }
}

fn compacted(value: &Value) -> Fact {
    let one = |a: &str, b: &str| {
        let data = [&value["compact_metadata"], &value["compactMetadata"]];
        data.iter().find_map(|data| data[a].as_u64().or_else(|| data[b].as_u64())).unwrap_or(0)
    };
    let trigger = ["compact_metadata", "compactMetadata"].map(|key| text(&value[key], "trigger"));
    Fact::Compacted {
        automatic: trigger.contains(&"auto"),
        before_tokens: one("pre_tokens", "preTokens"),
        after_tokens: one("post_tokens", "postTokens"),
    }
}

fn status(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|status| u16::try_from(status).ok())
}

/// The class of a failure that came without an error message.
fn kind_of_status(status: Option<u16>, subtype: &str) -> FailureKind {
    match status {
        Some(401 | 403) => FailureKind::Authentication,
        Some(404) => FailureKind::ModelNotFound,
        Some(429) => FailureKind::RateLimit,
        Some(400..=499) => FailureKind::InvalidRequest,
        Some(500..) => FailureKind::Server,
        _ => FailureKind::Unknown(subtype.to_owned()),
    }
}
