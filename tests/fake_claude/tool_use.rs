//! One tool call of the model: its hooks, its permission, its run, its result.

use std::rc::Rc;
use std::time::Instant;

use futures_util::future::Either;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::conversation::Conversation;
use crate::front::{Answer, Question};
use crate::hooks::Said;
use crate::permission;
use crate::tools::Outcome;

/// The person stopped the turn in a tool.
#[derive(Debug, Clone, Copy)]
pub struct Stopped {
    /// The tool had not begun.
    before_run: bool,
}

const REJECTED: &str = "The user doesn't want to proceed with this tool use. The tool use was \
                        rejected (eg. if it was a file edit, the new_string was NOT written to \
                        the file). STOP what you are doing and wait for the user to tell you how \
                        to proceed.";

/// What was decided about a call.
enum Decision {
    Run { input: Value, by: &'static str },
    Refuse { message: String, rule: bool, by_hook: bool },
    Stop,
}

impl Conversation {
    /// Runs the tools of one message, one after the other. `parents` are the uuids of the records
    /// of the calls.
    pub async fn use_tools(&mut self, uses: Vec<Value>, parents: &[String]) -> Result<(), Stopped> {
        let mut results = Vec::new();
        let mut stopped: Option<Stopped> = None;
        let last = uses.len() - 1;
        for (index, one) in uses.iter().enumerate() {
            let parent = &parents[index];
            let done = match stopped {
                Some(_) => Err(Stopped { before_run: true }),
                None => self.use_tool(one, parent).await,
            };
            let (record, result) = done.unwrap_or_else(|how| {
                stopped.get_or_insert(how);
                rejected(one, how)
            });
            let absorbed =
                if index == last && stopped.is_none() { self.absorb() } else { Vec::new() };
            self.chain_result(record, parent);
            results.push(result);
            for prompt in absorbed {
                results.push(self.chain_absorbed(&prompt));
            }
        }
        self.history.push(json!({"role": "user", "content": results}));
        stopped.map_or(Ok(()), Err)
    }

    fn chain_result(&self, mut record: Value, parent: &str) {
        let prompt_id = self.session.state.borrow().prompt_id.clone();
        record["promptId"] = json!(prompt_id);
        record["sourceToolAssistantUUID"] = json!(parent);
        if self.session.version.is_332() {
            record["session_id"] = json!(self.session.id());
        } else if let Some(record) = record.as_object_mut() {
            for newer in
                ["permissionDecision", "toolDenialKind", "toolDenialBeforeRun", "sandboxed"]
            {
                record.remove(newer);
            }
        }
        self.chain_to(Some(parent.to_owned()), record.clone());
        let tool_use = self.agent.as_ref().map(|agent| agent.tool_use_id.as_str());
        self.session.front.tool_result(&record, tool_use);
    }

    /// The record of the result, and the result for the model.
    async fn use_tool(&mut self, one: &Value, parent: &str) -> Result<(Value, Value), Stopped> {
        let name = one["name"].as_str().unwrap_or_default().to_owned();
        let id = one["id"].as_str().unwrap_or_default().to_owned();
        let mut input = one["input"].clone();
        if name == "ExitPlanMode" && self.session.version.is_332() {
            input = json!({});
        }
        let about = json!({"tool_name": name, "tool_input": input, "tool_use_id": id});
        let said = self.unless_stopped(self.fire("PreToolUse", about)).await;
        let said = said.map_err(|_| Stopped { before_run: true })?;
        let decision = self.decide(&name, &input, &id, &said, parent).await;
        let (input, by) = match decision {
            Decision::Run { input, by } => (input, by),
            Decision::Refuse { message, rule, by_hook } => {
                return Ok(refused(&id, &message, rule, by_hook));
            }
            Decision::Stop => return Err(Stopped { before_run: true }),
        };
        let began = Instant::now();
        let outcome =
            self.run_tool(&name, &input, &id).await.map_err(|_| Stopped { before_run: false })?;
        let elapsed = u64::try_from(began.elapsed().as_millis()).unwrap_or(0);
        let about = json!({"tool_name": name, "tool_input": input});
        self.fire_done(&outcome, about, &id, elapsed).await;
        Ok(told(&name, &id, &outcome, by))
    }

    async fn fire_done(&self, outcome: &Outcome, mut about: Value, id: &str, elapsed: u64) {
        if outcome.is_error {
            about["tool_use_id"] = json!(id);
            about["error"] = json!(outcome.text());
            about["is_interrupt"] = json!(false);
            about["duration_ms"] = json!(elapsed);
            self.fire("PostToolUseFailure", about).await;
        } else {
            about["tool_response"] = outcome.response.clone();
            about["tool_use_id"] = json!(id);
            about["duration_ms"] = json!(elapsed);
            self.fire("PostToolUse", about).await;
        }
    }

    async fn decide(
        &self,
        name: &str,
        input: &Value,
        id: &str,
        said: &[Said],
        parent: &str,
    ) -> Decision {
        let pre = said.iter().filter_map(Said::json).find_map(|json| {
            let said = &json["hookSpecificOutput"];
            let decision = said["permissionDecision"].as_str()?.to_owned();
            let reason = said["permissionDecisionReason"].as_str().unwrap_or_default().to_owned();
            Some((decision, reason, said["updatedInput"].clone()))
        });
        let mut forced = false;
        match pre {
            Some((decision, _, updated)) if decision == "allow" => {
                let input = if updated.is_object() { updated } else { input.clone() };
                return Decision::Run { input, by: "hook" };
            }
            Some((decision, reason, _)) if decision == "deny" => {
                let message = format!("PreToolUse:{name} hook error: {reason}");
                return Decision::Refuse { message, rule: true, by_hook: true };
            }
            Some((decision, ..)) => forced = decision == "ask",
            None => {}
        }
        if !forced && !permission::must_ask(&self.session, name, input) {
            return Decision::Run { input: input.clone(), by: "config" };
        }
        if self.session.mode() == "dontAsk" {
            let message = format!("Permission to use {name} has been denied.");
            return Decision::Refuse { message, rule: true, by_hook: false };
        }
        let suggestions =
            if forced { None } else { permission::suggestions(&self.session, name, input) };
        self.ask(name, input, id, suggestions, parent).await
    }

    /// The dialog and the hook run side by side: the first answer wins.
    async fn ask(
        &self,
        name: &str,
        input: &Value,
        id: &str,
        suggestions: Option<Value>,
        parent: &str,
    ) -> Decision {
        let needs_person = permission::needs_person(name);
        let question = Question {
            tool: name.to_owned(),
            input: input.clone(),
            tool_use_id: id.to_owned(),
            suggestions: suggestions.clone(),
            needs_person,
            agent: self.agent.as_ref().map(|agent| agent.id.clone()),
        };
        let mut about = json!({"tool_name": name, "tool_input": input});
        if let Some(suggestions) = suggestions {
            about["permission_suggestions"] = suggestions;
        }
        let kill = CancellationToken::new();
        let hooks = Rc::clone(&self.session.hooks);
        let payload = self.payload("PermissionRequest", about);
        let entrypoint = self.session.entrypoint();
        // On its own, since it outlives a Yes in the dialog.
        let hook = tokio::task::spawn_local(hooks.run(payload, entrypoint, kill.clone()));
        let verdict = async move {
            let said = hook.await.unwrap_or_default();
            said.iter().filter_map(Said::json).find_map(|json| {
                let decision = json["hookSpecificOutput"]["decision"].clone();
                decision["behavior"].is_string().then_some(decision)
            })
        };
        let notify = self.notify_later();
        let answer = self.session.front.ask(question);
        let asked = async {
            tokio::pin!(verdict, answer);
            match futures_util::future::select(&mut verdict, &mut answer).await {
                Either::Left((Some(decision), _)) if self.is_valid(name, &decision) => {
                    Either::Left(decision)
                }
                Either::Left(_) => Either::Right(answer.await),
                // Without anybody in front the hook is the only one to ask.
                Either::Right((Answer::Nobody, _)) => match verdict.await {
                    Some(decision) => Either::Left(decision),
                    None => Either::Right(Answer::Nobody),
                },
                Either::Right((answer, _)) => Either::Right(answer),
            }
        };
        let asked = self.unless_stopped(asked).await;
        notify.abort();
        match asked {
            Err(_) => {
                kill.cancel();
                Decision::Stop
            }
            Ok(Either::Left(decision)) => self.follow(name, input, id, &decision, parent),
            Ok(Either::Right(answer)) => {
                if !matches!(answer, Answer::Yes { .. }) {
                    kill.cancel();
                }
                self.obey(name, input, answer)
            }
        }
    }

    /// A plain allow does not answer a question that only a person can answer.
    fn is_valid(&self, name: &str, decision: &Value) -> bool {
        let plain = decision["behavior"] == "allow" && !decision["updatedInput"].is_object();
        let takes_plain = !permission::needs_person(name)
            || (name == "ExitPlanMode" && !self.session.version.is_332());
        !plain || takes_plain
    }

    fn follow(
        &self,
        name: &str,
        input: &Value,
        id: &str,
        decision: &Value,
        parent: &str,
    ) -> Decision {
        let allowed = decision["behavior"] == "allow";
        if !allowed && decision["interrupt"] == true {
            return Decision::Stop;
        }
        let mut record = json!({"attachment": {"type": "hook_permission_decision",
            "decision": decision["behavior"], "toolUseID": id, "hookEvent": "PermissionRequest"},
            "type": "attachment"});
        if self.session.version.is_332() {
            record["session_id"] = json!(self.session.id());
        }
        self.chain_to(Some(parent.to_owned()), record);
        if !allowed {
            let message = decision["message"].as_str().unwrap_or("Denied by hook").to_owned();
            return Decision::Refuse { message, rule: true, by_hook: true };
        }
        permission::update(&self.session, &decision["updatedPermissions"]);
        let updated = &decision["updatedInput"];
        let input = if updated.is_object() { updated.clone() } else { input.clone() };
        self.leave_plan(name);
        Decision::Run { input, by: "hook" }
    }

    fn obey(&self, name: &str, input: &Value, answer: Answer) -> Decision {
        match answer {
            Answer::Yes { updated_input } => {
                self.leave_plan(name);
                let input = updated_input.unwrap_or_else(|| input.clone());
                Decision::Run { input, by: "user" }
            }
            Answer::No { message: Some(message) } => {
                Decision::Refuse { message, rule: false, by_hook: false }
            }
            Answer::No { message: None } | Answer::Stop => Decision::Stop,
            Answer::Nobody => {
                let message = format!(
                    "Claude requested permissions to use {name}, but you \
                                       haven't granted it yet."
                );
                Decision::Refuse { message, rule: true, by_hook: false }
            }
        }
    }

    fn leave_plan(&self, name: &str) {
        if name == "ExitPlanMode" {
            "default".clone_into(&mut self.session.state.borrow_mut().mode);
        }
    }

    /// The notification about a question that nobody answers.
    fn notify_later(&self) -> tokio::task::JoinHandle<()> {
        let view = self.view();
        tokio::task::spawn_local(async move {
            tokio::time::sleep(std::time::Duration::from_secs(6)).await;
            let about = json!({"message": "Claude needs your permission",
                "notification_type": "permission_prompt"});
            view.fire("Notification", about).await;
        })
    }
}

fn result(id: &str, content: &Value, is_error: bool) -> Value {
    let mut result = json!({"tool_use_id": id, "type": "tool_result", "content": content});
    if is_error {
        result["is_error"] = json!(true);
    }
    result
}

fn rejected(one: &Value, how: Stopped) -> (Value, Value) {
    let id = one["id"].as_str().unwrap_or_default();
    let result = result(id, &json!(REJECTED), true);
    let mut record = json!({"type": "user", "message": {"role": "user", "content": [result]},
        "toolUseResult": "User rejected tool use", "toolDenialKind": "user-rejected"});
    if how.before_run {
        record["toolDenialBeforeRun"] = json!(true);
    }
    (record, result)
}

fn refused(id: &str, message: &str, rule: bool, by_hook: bool) -> (Value, Value) {
    let result = result(id, &json!(message), true);
    let kind = if rule { "permission-rule" } else { "user-rejected" };
    let source = if by_hook { "hook" } else { "config" };
    let record = json!({"type": "user", "message": {"role": "user", "content": [result]},
        "toolUseResult": format!("Error: {message}"), "toolDenialKind": kind,
        "permissionDecision": {"decision": "reject", "source": source, "reasonType": source}});
    (record, result)
}

fn told(name: &str, id: &str, outcome: &Outcome, by: &str) -> (Value, Value) {
    let mut result = result(id, &outcome.content, outcome.is_error);
    if name == "Bash" {
        result["is_error"] = json!(outcome.is_error);
    }
    let tool_use_result = if outcome.is_error {
        json!(format!("Error: {}", outcome.text()))
    } else {
        outcome.response.clone()
    };
    let reason = if by == "config" { "mode" } else { by };
    let mut record = json!({"type": "user", "message": {"role": "user", "content": [result]},
        "toolUseResult": tool_use_result,
        "permissionDecision": {"decision": "accept", "source": by, "reasonType": reason}});
    if by == "hook" {
        record["permissionDecision"]["reasonCode"] = json!("unknown");
    }
    if name == "Bash" {
        record["sandboxed"] = json!(false);
    }
    (record, result)
}
