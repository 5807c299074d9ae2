//! What a worker must tell in which situation, as a table: one script of the model, what is done to
//! the worker, and the lines of its story. The same table runs against either transport, either
//! version, the real CLI and its stand-in.

use serde_json::json;

use crate::claude::housekeeping;
use crate::mock_api::{Gate, MessagesStream, MockApi, Reply};

/// One step of whoever holds the worker.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Submit(&'static str),
    /// A prompt with a line that names an image file.
    SubmitImage,
    /// During a turn. Whether it was taken is known at the latest at the end of the turn.
    Steer(&'static str),
    Interrupt,
    Compact,
    /// Waits until a question is asked.
    Asked,
    /// Waits for the next question and allows it.
    Allow,
    /// The same with another input, JSON text.
    AllowInput(&'static str),
    Deny(&'static str),
    /// Waits until the script stands at its gate for the time that this number says.
    AtGate(usize),
    /// Waits until this text was told as it came. Live text may be missing, so it is not waited for
    /// for ever.
    Shown(&'static str),
    /// Lets the script pass its gate once.
    Pass,
    /// Waits for the end of a turn.
    Ends,
    /// Waits until a tool runs (the file `running` in the workspace is there).
    ToolRuns,
    /// Ends the worker.
    Stop,
    /// Opens the same session in another worker, or a copy of it.
    Resume,
    Fork,
}

/// A story. Lines of live facts are no part of it: they may be missing.
#[derive(Clone, Copy)]
pub struct WorkerStory {
    pub name: &'static str,
    /// What the model answers; the gate is the story's own.
    pub script: fn(&MockApi, &Gate),
    pub steps: &'static [Step],
    /// See [`line`](crate::worker_stage::line) for their form.
    pub lines: &'static [&'static str],
}

/// Every story that holds for all transports and versions.
pub const STORIES: &[WorkerStory] = &[
    WorkerStory {
        name: "a text and a second turn",
        script: |api, _| {
            api.push(MessagesStream::new().text(&["Hel", "lo."]).stop("end_turn", 5).reply());
            api.push(MessagesStream::say("Again."));
        },
        steps: &[Step::Submit("greet me"), Step::Ends, Step::Submit("once more"), Step::Ends],
        lines: &["text Hello.", "end completed", "text Again.", "end completed"],
    },
    WorkerStory {
        name: "a prompt with an image is known again",
        script: |api, _| {
            api.push(MessagesStream::say("A red square."));
            api.push(MessagesStream::say("Again."));
        },
        steps: &[Step::SubmitImage, Step::Ends, Step::Submit("once more"), Step::Ends],
        lines: &["text A red square.", "end completed", "text Again.", "end completed"],
    },
    WorkerStory {
        name: "thinking and a harmless tool",
        script: |api, _| {
            api.push(
                MessagesStream::new()
                    .thinking(&["a ", "thought"], "c2ln")
                    .text(&["I look."])
                    .tool_use("toolu_1", "Bash", r#"{"command":"echo alpha"}"#)
                    .stop("tool_use", 9)
                    .reply(),
            );
            api.push(MessagesStream::say("It is alpha."));
        },
        steps: &[Step::Submit("look"), Step::Ends],
        lines: &[
            "thinking a thought",
            "text I look.",
            "tool Bash toolu_1",
            "result toolu_1 alpha",
            "text It is alpha.",
            "end completed",
        ],
    },
    WorkerStory {
        name: "a tool that is allowed with another input",
        script: |api, _| script_touch(api),
        steps: &[
            Step::Submit("make a file"),
            Step::AllowInput(r#"{"command":"touch other.txt && echo made"}"#),
            Step::Ends,
        ],
        lines: &["tool Bash toolu_1", "result toolu_1 made", "text So be it.", "end completed"],
    },
    WorkerStory {
        name: "a tool that is denied",
        script: |api, _| script_touch(api),
        steps: &[Step::Submit("make a file"), Step::Deny("not here"), Step::Ends],
        lines: &[
            "tool Bash toolu_1",
            "result toolu_1 error: not here",
            "text So be it.",
            "end completed",
        ],
    },
    WorkerStory {
        name: "an interrupt while text streams",
        script: |api, gate| {
            api.push(MessagesStream::new().open_text(&["Half"]).wait(gate).reply());
            api.push(MessagesStream::say("Whole."));
        },
        steps: &[
            Step::Submit("talk"),
            Step::AtGate(1),
            Step::Shown("Half"),
            Step::Interrupt,
            Step::Ends,
            Step::Submit("go on"),
            Step::Ends,
        ],
        lines: &["text Half", "interrupted", "end interrupted", "text Whole.", "end completed"],
    },
    WorkerStory {
        name: "an interrupt while a tool runs",
        script: |api, _| {
            let input = r#"{"command":"echo > running; sleep 600"}"#;
            api.push(
                MessagesStream::new()
                    .tool_use("toolu_1", "Bash", input)
                    .stop("tool_use", 3)
                    .reply(),
            );
        },
        steps: &[Step::Submit("sleep"), Step::Allow, Step::ToolRuns, Step::Interrupt, Step::Ends],
        lines: &[
            "tool Bash toolu_1",
            "result toolu_1 error: The user doesn't want to proceed with this tool use.",
            "interrupted",
            "end interrupted",
        ],
    },
    WorkerStory {
        name: "a prompt that the running turn takes in",
        script: |api, gate| {
            api.push(
                MessagesStream::new()
                    .wait(gate)
                    .tool_use("toolu_1", "Bash", r#"{"command":"echo alpha"}"#)
                    .stop("tool_use", 3)
                    .reply(),
            );
            api.push(MessagesStream::say("Both heard."));
        },
        steps: &[
            Step::Submit("wait"),
            Step::AtGate(1),
            Step::Steer("and this"),
            Step::Pass,
            Step::Ends,
        ],
        lines: &["tool Bash toolu_1", "result toolu_1 alpha", "text Both heard.", "end completed"],
    },
    WorkerStory {
        name: "a prompt that no tool of the turn takes in",
        script: |api, gate| {
            let first = MessagesStream::new().open_text(&["First."]).wait(gate).block_stop(0);
            api.push(first.stop("end_turn", 3).reply());
            api.push(MessagesStream::say("Second."));
        },
        steps: &[
            Step::Submit("begin"),
            Step::AtGate(1),
            Step::Shown("First."),
            Step::Steer("one thing more"),
            Step::Pass,
            Step::Ends,
        ],
        lines: &["text First.", "text Second.", "end completed"],
    },
    WorkerStory {
        name: "a sub-agent in the background, and the turn that nobody asked for",
        script: script_agent,
        steps: &[Step::Submit("delegate it"), Step::Ends, Step::Pass, Step::Ends],
        lines: &[
            "tool Agent toolu_1",
            "agent in the background",
            "result toolu_1 Async agent launched successfully.",
            "text It works on it.",
            "end completed",
            "agent Completed",
            "text It has reported.",
            "end completed unasked",
        ],
    },
    WorkerStory {
        name: "a sub-agent in the background that asks while the turn ends",
        script: script_agent_asks,
        steps: &[
            Step::Submit("delegate it"),
            Step::Asked,
            Step::Pass,
            Step::Ends,
            Step::Allow,
            Step::Ends,
        ],
        lines: &[
            "tool Agent toolu_1",
            "agent in the background",
            "result toolu_1 Async agent launched successfully.",
            "text It works on it.",
            "end completed",
            "agent Completed",
            "text It has reported.",
            "end completed unasked",
        ],
    },
    WorkerStory {
        name: "a failure of the API, and on",
        script: |api, _| {
            let words = "Your credit balance is too low to access the Anthropic API.";
            api.push(Reply::error(400, "invalid_request_error", words));
            api.push(MessagesStream::say("Better."));
        },
        steps: &[Step::Submit("try"), Step::Ends, Step::Submit("again"), Step::Ends],
        lines: &["failure Billing", "end failed", "text Better.", "end completed"],
    },
    WorkerStory {
        name: "a limit of requests",
        script: |api, _| {
            for _ in 0..4 {
                api.push(Reply::error(429, "rate_limit_error", "slow").header("retry-after", "0"));
            }
        },
        steps: &[Step::Submit("try"), Step::Ends],
        lines: &["failure RateLimit", "end failed"],
    },
    WorkerStory {
        name: "a compaction",
        script: |api, _| {
            for _ in 0..3 {
                api.push(MessagesStream::say("Some words."));
            }
            api.push(MessagesStream::say("<summary>All of it.</summary>"));
            api.push(MessagesStream::say("After."));
        },
        steps: &[
            Step::Submit("one"),
            Step::Ends,
            Step::Submit("two"),
            Step::Ends,
            Step::Submit("three"),
            Step::Ends,
            Step::Compact,
            Step::Ends,
            Step::Submit("four"),
            Step::Ends,
        ],
        lines: &[
            "text Some words.",
            "end completed",
            "text Some words.",
            "end completed",
            "text Some words.",
            "end completed",
            "compacted",
            "end compacted",
            "text After.",
            "end completed",
        ],
    },
    WorkerStory {
        name: "a session that goes on in another worker, and a copy of it",
        script: |api, _| {
            for text in ["First.", "Second.", "Third."] {
                api.push(MessagesStream::say(text));
            }
        },
        steps: &[
            Step::Submit("one"),
            Step::Ends,
            Step::Stop,
            Step::Resume,
            Step::Submit("two"),
            Step::Ends,
            Step::Stop,
            Step::Fork,
            Step::Submit("three"),
            Step::Ends,
            Step::Stop,
        ],
        lines: &[
            "text First.",
            "end completed",
            "ended",
            "text Second.",
            "end completed",
            "ended",
            "text Third.",
            "end completed",
            "ended",
        ],
    },
];

/// A model that gives its job to a sub-agent in the background, and what the sub-agent's own model says.
pub fn script_agent(api: &MockApi, gate: &Gate) {
    let gate = gate.clone();
    let input = json!({
        "description": "Small job",
        "prompt": "Do the small job.",
        "subagent_type": "general-purpose",
        "run_in_background": true,
    });
    api.answer(move |request| {
        let said = request.last_user_text();
        let talk = request.body["messages"].to_string();
        Some(if let Some(aside) = housekeeping(request) {
            aside
        } else if said.contains("the small job") {
            // It takes longer than the turn that launched it.
            let last = MessagesStream::new().wait(&gate).text(&["The job is done."]);
            last.stop("end_turn", 5).reply()
        } else if said.contains("task-notification") {
            MessagesStream::say("It has reported.")
        } else if talk.contains("toolu_1") {
            MessagesStream::say("It works on it.")
        } else {
            let call = MessagesStream::new().tool_use("toolu_1", "Agent", &input.to_string());
            call.stop("tool_use", 9).reply()
        })
    });
}

/// The same, but the sub-agent uses a tool that needs a permission, and the turn that launched it ends
/// later than that is asked.
pub fn script_agent_asks(api: &MockApi, gate: &Gate) {
    let gate = gate.clone();
    let input = json!({
        "description": "Small job",
        "prompt": "Do the small job.",
        "subagent_type": "general-purpose",
        "run_in_background": true,
    });
    api.answer(move |request| {
        let said = request.last_user_text();
        let talk = request.body["messages"].to_string();
        Some(if let Some(aside) = housekeeping(request) {
            aside
        } else if talk.contains("toolu_2") {
            MessagesStream::say("The job is done.")
        } else if said.contains("task-notification") {
            MessagesStream::say("It has reported.")
        } else if talk.contains("toolu_1") {
            let last = MessagesStream::new().wait(&gate).text(&["It works on it."]);
            last.stop("end_turn", 5).reply()
        } else if said.contains("the small job") {
            let call = r#"{"command":"touch made.txt"}"#;
            MessagesStream::new().tool_use("toolu_2", "Bash", call).stop("tool_use", 9).reply()
        } else {
            let call = MessagesStream::new().tool_use("toolu_1", "Agent", &input.to_string());
            call.stop("tool_use", 9).reply()
        })
    });
}

fn script_touch(api: &MockApi) {
    api.push(
        MessagesStream::new()
            .tool_use("toolu_1", "Bash", r#"{"command":"touch made.txt"}"#)
            .stop("tool_use", 3)
            .reply(),
    );
    api.push(MessagesStream::say("So be it."));
}
