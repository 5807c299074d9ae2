//! What each key does: in a dialog, in the input box, to a turn that runs.

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use serde_json::json;

use crate::app::{App, Exit, Overlay};
use crate::dialog::{Choice, Dialog};
use crate::front::{Answer, Question};
use crate::input_box::Entered;
use crate::keys::Key;
use crate::record::timestamp;
use crate::session::{Prompt, Source};
use crate::version::Version;

impl App {
    pub async fn press_all(&mut self, keys: Vec<Key>) -> Result<(), Exit> {
        for key in keys {
            if self.dialog.is_some() {
                self.press_dialog(&key);
            } else {
                self.press(key).await?;
            }
        }
        Ok(())
    }

    fn press_dialog(&mut self, key: &Key) {
        match self.dialog.take() {
            Some(Overlay::Plain(mut dialog)) => {
                if dialog.press(key) == Choice::Open {
                    self.dialog = Some(Overlay::Plain(dialog));
                } else if self.running.is_none() {
                    // What waits may go on.
                    self.session.queued.notify_one();
                }
            }
            Some(Overlay::Question(mut dialog, question, reply)) => match dialog.press(key) {
                Choice::Open => {
                    self.dialog = Some(Overlay::Question(dialog, question, reply));
                }
                Choice::Entry(index) => {
                    // A question that was taken back needs no answer.
                    let _ = reply.send(self.picked(&question, index, dialog.entries.len()));
                }
                Choice::Cancelled => {
                    let _ = reply.send(Answer::Stop);
                }
            },
            None => {}
        }
    }

    fn picked(&self, question: &Question, index: usize, count: usize) -> Answer {
        if question.tool == "AskUserQuestion" {
            let asked = &question.input["questions"][0];
            let label = &asked["options"][index]["label"];
            let mut updated = question.input.clone();
            updated["answers"] = json!({asked["question"].as_str().unwrap_or_default(): label});
            return Answer::Yes { updated_input: Some(updated) };
        }
        if index + 1 == count {
            return Answer::No { message: None };
        }
        if index > 0 && self.session.version.is_332() && index == 2 {
            "auto".clone_into(&mut self.session.state.borrow_mut().mode);
        }
        Answer::Yes { updated_input: None }
    }

    async fn press(&mut self, key: Key) -> Result<(), Exit> {
        let now = Instant::now();
        let recent = |last: Option<Instant>| {
            last.is_some_and(|last| now.duration_since(last) < Duration::from_millis(1500))
        };
        match key {
            Key::Text(text) => self.input.text.push_str(&text),
            Key::Paste(text) => {
                self.session.quirks.die("die-at-paste");
                self.input.paste(&text);
                if let Some(wait) = self.session.quirks.seconds("dialog-after-paste") {
                    self.surprise_at.get_or_insert(tokio::time::Instant::now() + wait);
                }
            }
            Key::NewLine => self.input.text.push('\n'),
            Key::Backspace => {
                self.input.text.pop();
            }
            Key::CtrlU => self.input.kill_line(),
            Key::Enter => return self.enter().await,
            Key::Escape | Key::CtrlC if self.running.is_some() => self.cancel.cancel(),
            Key::Escape => {
                self.go_on_at = None;
                if recent(self.last_escape.replace(now)) && self.input.text.is_empty() {
                    self.last_escape = None;
                    self.dialog = Some(Overlay::Plain(Dialog::rewind()));
                }
            }
            Key::CtrlC | Key::CtrlD => {
                self.input.text.clear();
                if recent(self.last_exit_key.replace(now)) {
                    return Err(Exit::because(0, "prompt_input_exit"));
                }
            }
            Key::Up | Key::Down | Key::Tab => {}
        }
        Ok(())
    }

    async fn enter(&mut self) -> Result<(), Exit> {
        if self.running.is_none() && !self.input.text.is_empty() && self.swallow.replace(false) {
            return Ok(());
        }
        match self.input.enter() {
            Entered::Nothing => {}
            Entered::Prompt(text) if self.running.is_some() => self.steer(text).await,
            Entered::Prompt(text) => {
                let images = std::mem::take(&mut self.input.images);
                self.start(vec![Prompt { images, ..Prompt::new(text, Source::Typed) }]);
            }
            Entered::Command(line) if self.running.is_some() => self.waiting_commands.push(line),
            Entered::Command(line) => return self.command(&line).await,
            Entered::Shell(command) => self.shell(&command).await,
        }
        Ok(())
    }

    /// A prompt while a turn runs.
    async fn steer(&mut self, text: String) {
        if !self.session.quirks.has("no-enqueue-record") {
            self.desk.note(json!({"type": "queue-operation", "operation": "enqueue",
                "timestamp": timestamp(), "content": text}));
        }
        let mut prompt = Prompt::new(text, Source::Queued);
        prompt.announced = self.session.version.is_332();
        let (text, announced) = (prompt.text.clone(), prompt.announced);
        self.session.enqueue(prompt);
        if announced {
            let view = self.desk.view();
            tokio::task::spawn_local(async move {
                view.fire("UserPromptSubmit", json!({"prompt": text})).await;
            });
        }
    }

    pub async fn command(&mut self, line: &str) -> Result<(), Exit> {
        let name = line.split_whitespace().next().unwrap_or_default();
        match name {
            "/" => self.screen.say('⎿', "Type a command"),
            "/exit" | "/quit" => return Err(Exit::because(0, "prompt_input_exit")),
            "/compact" => {
                if let Some(mut thread) = self.take_idle() {
                    self.running = Some(
                        async move {
                            let ended = thread.compact().await;
                            (thread, ended)
                        }
                        .boxed_local(),
                    );
                }
            }
            "/clear" => self.clear().await,
            "/cost" | "/model" | "/config" | "/status" => {
                self.dialog = Some(Overlay::Plain(Dialog::cost()));
            }
            _ => {
                let text = format!("Unknown command: {name}");
                self.screen.say('⎿', &text);
                self.desk.inform(&text);
            }
        }
        Ok(())
    }

    pub async fn clear(&mut self) {
        self.screen.lines.clear();
        if let Some(thread) = self.idle.take() {
            let thread = thread.clear().await;
            self.desk = thread.view();
            self.idle = Some(thread);
        }
    }

    async fn shell(&mut self, command: &str) {
        let input = json!({"command": command});
        let done = self.desk.run_tool("Bash", &input, "").await;
        let output = done.map(|outcome| outcome.text().to_owned()).unwrap_or_default();
        let text = format!(
            "<bash-input>{command}</bash-input>\n<bash-stdout>{output}</bash-stdout>\
             <bash-stderr></bash-stderr>"
        );
        let mut prompt = Prompt::new(text, Source::Typed);
        prompt.announced = true;
        self.start(vec![prompt]);
    }
}

pub fn question_dialog(version: Version, question: &Question) -> Dialog {
    if question.tool == "AskUserQuestion" {
        let asked = &question.input["questions"][0];
        let options = asked["options"].as_array().cloned().unwrap_or_default();
        let entries = options.iter().filter_map(|one| one["label"].as_str().map(str::to_owned));
        let mut dialog = Dialog::permission(version, "", &[]);
        dialog.heading = vec![asked["question"].as_str().unwrap_or_default().to_owned()];
        dialog.entries = entries.collect();
        dialog.footer = "Enter to select · ↑/↓ to navigate · Esc to cancel";
        return dialog;
    }
    let line = |key: &str| question.input[key].as_str().map(str::to_owned);
    let lines: Vec<String> =
        ["description", "command", "file_path", "plan"].into_iter().filter_map(line).collect();
    let title = match question.tool.as_str() {
        "Bash" => "Bash command",
        "Write" => "Create file",
        "Edit" => "Edit file",
        "ExitPlanMode" => "Exit plan mode?",
        other => other,
    };
    Dialog::permission(version, title, &lines)
}
