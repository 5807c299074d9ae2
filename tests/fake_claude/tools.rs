//! The tools: they really run.

use std::fs;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::conversation::{Conversation, Interrupted};

/// What a tool brought.
pub struct Outcome {
    /// For the model.
    pub content: Value,
    pub is_error: bool,
    /// For the PostToolUse hook and the record.
    pub response: Value,
}

impl Outcome {
    fn good(content: impl Into<Value>, response: Value) -> Self {
        Self { content: content.into(), is_error: false, response }
    }

    fn bad(text: impl Into<String>) -> Self {
        Self { content: Value::String(text.into()), is_error: true, response: Value::Null }
    }

    pub fn text(&self) -> &str {
        self.content.as_str().unwrap_or_default()
    }
}

impl Conversation {
    pub async fn run_tool(
        &self,
        name: &str,
        input: &Value,
        id: &str,
    ) -> Result<Outcome, Interrupted> {
        let text = |key: &str| input[key].as_str().unwrap_or_default();
        match name {
            "Bash" => self.bash(text("command")).await,
            "Write" => Ok(write(text("file_path"), text("content"))),
            "Edit" => Ok(edit(text("file_path"), text("old_string"), text("new_string"))),
            "Read" => Ok(read(text("file_path"))),
            "Agent" | "Task" => self.launch(input, id).await,
            "AskUserQuestion" => Ok(answered(input)),
            "ExitPlanMode" => Ok(self.save_plan(text("plan"))),
            _ => Ok(Outcome::bad(format!(
                "<tool_use_error>Error: No such tool available: {name}</tool_use_error>"
            ))),
        }
    }

    /// In a session of its own, so a signal to our group never reaches it.
    async fn bash(&self, command: &str) -> Result<Outcome, Interrupted> {
        let itself = std::env::current_exe().expect("this program's own file");
        let mut child = Command::new(itself);
        child.arg(crate::RUN_IN_OWN_SESSION).arg(command).current_dir(&self.session.home.cwd);
        child.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = child.spawn() else { return Ok(Outcome::bad("cannot run a shell")) };
        let leader = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        self.session.commands.borrow_mut().extend(leader);
        let mut output = String::new();
        let mut pipe = child.stdout.take();
        let run = async {
            if let Some(pipe) = &mut pipe {
                let _ = pipe.read_to_string(&mut output).await;
            }
            child.wait().await
        };
        let status = self.unless_stopped(run).await;
        self.session.commands.borrow_mut().retain(|one| Some(*one) != leader);
        let Ok(status) = status else {
            if let Some(leader) = leader {
                let _ = kill_process_group(leader, Signal::KILL);
            }
            return Err(Interrupted);
        };
        let output = output.trim_end().to_owned();
        let code = status.ok().and_then(|status| status.code()).unwrap_or(1);
        if code != 0 {
            return Ok(Outcome::bad(format!("Exit code {code}\n{output}").trim_end().to_owned()));
        }
        let response = json!({"stdout": output, "stderr": "", "interrupted": false,
            "isImage": false, "noOutputExpected": output.is_empty()});
        let content =
            if output.is_empty() { "(Bash completed with no output)".to_owned() } else { output };
        Ok(Outcome::good(content, response))
    }

    fn save_plan(&self, plan: &str) -> Outcome {
        let folder = self.session.home.config_dir.join("plans");
        let path = folder.join(format!("{}.md", self.session.id()));
        let _ = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, plan));
        let response = if self.session.version.is_332() {
            json!({"plan": plan, "isAgent": false, "filePath": path, "planWasEdited": true})
        } else {
            json!({"plan": plan, "isAgent": false, "filePath": path})
        };
        Outcome::good(
            format!("User has approved your plan. You can now start coding.\n\n{plan}"),
            response,
        )
    }
}

fn write(path: &str, content: &str) -> Outcome {
    let before = fs::read_to_string(path).ok();
    if let Err(error) = fs::write(path, content) {
        return Outcome::bad(error.to_string());
    }
    let (kind, words) = match &before {
        None => ("create", format!("File created successfully at: {path}")),
        Some(_) => ("update", format!("The file {path} has been updated successfully.")),
    };
    let words =
        format!("{words} (file state is current in your context — no need to Read it back)");
    Outcome::good(
        words,
        json!({"type": kind, "filePath": path, "content": content, "structuredPatch": [],
            "originalFile": before, "userModified": false}),
    )
}

fn edit(path: &str, old: &str, new: &str) -> Outcome {
    let before = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(_) => return Outcome::bad("<tool_use_error>File does not exist.</tool_use_error>"),
    };
    let Some(at) = before.find(old) else {
        return Outcome::bad(
            "<tool_use_error>String to replace not found in file.</tool_use_error>",
        );
    };
    if let Err(error) = fs::write(path, before.replacen(old, new, 1)) {
        return Outcome::bad(error.to_string());
    }
    let line = before[..at].matches('\n').count() + 1;
    let removed = old.lines().map(|line| format!("-{line}"));
    let added = new.lines().map(|line| format!("+{line}"));
    let lines: Vec<String> = removed.chain(added).collect();
    Outcome::good(
        format!(
            "The file {path} has been updated successfully. (file state is current in your \
                 context — no need to Read it back)"
        ),
        json!({"filePath": path, "oldString": old, "newString": new, "originalFile": before,
            "structuredPatch": [{"oldStart": line, "oldLines": old.lines().count(),
                "newStart": line, "newLines": new.lines().count(), "lines": lines}],
            "userModified": false, "replaceAll": false}),
    )
}

fn read(path: &str) -> Outcome {
    let Ok(text) = fs::read_to_string(path) else {
        return Outcome::bad("<tool_use_error>File does not exist.</tool_use_error>");
    };
    let lines: Vec<&str> = text.split('\n').collect();
    let numbered: Vec<String> =
        lines.iter().enumerate().map(|(at, line)| format!("{}\t{line}", at + 1)).collect();
    Outcome::good(
        numbered.join("\n"),
        json!({"type": "text", "file": {"filePath": path, "content": text,
            "numLines": lines.len(), "startLine": 1, "totalLines": lines.len()}}),
    )
}

fn answered(input: &Value) -> Outcome {
    let answers = input["answers"].as_object().cloned().unwrap_or_default();
    let words: Vec<String> = answers
        .iter()
        .map(|(question, answer)| {
            format!("\"{question}\"=\"{}\"", answer.as_str().unwrap_or_default())
        })
        .collect();
    Outcome::good(
        format!("Your questions have been answered: {}.", words.join(", ")),
        json!({"questions": input["questions"], "answers": answers}),
    )
}

impl Outcome {
    /// The tool's own words as blocks, and what the hook is told.
    pub fn blocks(content: Value, response: Value) -> Self {
        Self::good(content, response)
    }
}
