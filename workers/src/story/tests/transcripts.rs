//! Stories from records alone: every transcript of both versions, and with native deltas ahead of
//! them where a capture of the same scenario exists.

use insta::assert_snapshot;

use super::support::{completed, outline, told};
use crate::fact::{Fact, PromptSource};
use crate::story::Ending;
use crate::transcript::Record;

/// The facts of a transcript, turn by turn, and how each ended.
pub fn recorded(path: &str) -> Vec<(Vec<Fact>, Ending)> {
    let path =
        format!("{}/../tests/fixtures/claude/transcripts/{path}", env!("CARGO_MANIFEST_DIR"));
    let mut turns: Vec<(Vec<Fact>, Ending)> = Vec::new();
    for line in std::fs::read(path).unwrap().split(|byte| *byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        for fact in Record::parse(line).unwrap().facts {
            let begins = matches!(
                fact,
                Fact::Prompt { source: PromptSource::Typed | PromptSource::Notification, .. }
            );
            if begins || turns.is_empty() {
                turns.push((Vec::new(), completed()));
            }
            let (facts, ending) = turns.last_mut().unwrap();
            match &fact {
                Fact::Interrupted { .. } => *ending = Ending::Interrupted,
                Fact::ApiFailure { .. } => *ending = Ending::Failed,
                // What was queued becomes the next turn, which is followed as the same one.
                Fact::Prompt { source: PromptSource::Queued, .. } => *ending = completed(),
                _ => {}
            }
            facts.push(fact);
        }
    }
    turns
}

/// Events and session of each turn.
fn stories(path: &str) -> String {
    let turns = recorded(path).into_iter().map(|(facts, ending)| {
        let (book, messages) = told(facts, &ending);
        format!("{}\n\n{}", book.text(), outline(&messages))
    });
    turns.collect::<Vec<_>>().join("\n--\n\n")
}

macro_rules! transcripts {
    ($($name:ident: $path:literal,)*) => {$(
        #[test]
        fn $name() {
            assert_snapshot!(stories($path));
        }
    )*};
}

/// All that have something to tell.
pub const TRANSCRIPTS: &[&str] = &[
    "2.1.197/steering-absorbed.jsonl",
    "2.1.197/thinking-tools-turn.jsonl",
    "2.1.332/compaction.jsonl",
    "2.1.332/interrupt-tool.jsonl",
    "2.1.332/max-tokens.jsonl",
    "2.1.332/mid-stream-error.jsonl",
    "2.1.332/parallel-tools.jsonl",
    "2.1.332/permission-denied.jsonl",
    "2.1.332/refusal.jsonl",
    "2.1.332/steering-absorbed.jsonl",
    "2.1.332/steering-then-interrupt.jsonl",
    "2.1.332/subagent-async.jsonl",
    "2.1.332/thinking-tools-turn.jsonl",
];

transcripts! {
    recorded_api_error_401_197: "2.1.197/api-error-401.jsonl",
    recorded_interrupt_text_197: "2.1.197/interrupt-text.jsonl",
    recorded_permission_denied_197: "2.1.197/permission-denied.jsonl",
    recorded_steering_absorbed_197: "2.1.197/steering-absorbed.jsonl",
    recorded_text_turn_197: "2.1.197/text-turn.jsonl",
    recorded_thinking_tools_turn_197: "2.1.197/thinking-tools-turn.jsonl",
    recorded_api_error_401: "2.1.332/api-error-401.jsonl",
    recorded_api_error_529: "2.1.332/api-error-529.jsonl",
    recorded_ask_user_question: "2.1.332/ask-user-question.jsonl",
    recorded_compaction: "2.1.332/compaction.jsonl",
    recorded_exit_plan_mode: "2.1.332/exit-plan-mode.jsonl",
    recorded_interrupt_permission_dialog: "2.1.332/interrupt-permission-dialog.jsonl",
    recorded_interrupt_text: "2.1.332/interrupt-text.jsonl",
    recorded_interrupt_tool: "2.1.332/interrupt-tool.jsonl",
    recorded_max_tokens: "2.1.332/max-tokens.jsonl",
    recorded_mid_stream_error: "2.1.332/mid-stream-error.jsonl",
    recorded_parallel_tools: "2.1.332/parallel-tools.jsonl",
    recorded_permission_allowed_updated_input: "2.1.332/permission-allowed-updated-input.jsonl",
    recorded_permission_denied_interrupt: "2.1.332/permission-denied-interrupt.jsonl",
    recorded_permission_denied: "2.1.332/permission-denied.jsonl",
    recorded_rate_limit_account: "2.1.332/rate-limit-account.jsonl",
    recorded_rate_limit_api_key: "2.1.332/rate-limit-api-key.jsonl",
    recorded_refusal: "2.1.332/refusal.jsonl",
    recorded_steering_absorbed: "2.1.332/steering-absorbed.jsonl",
    recorded_steering_queued: "2.1.332/steering-queued.jsonl",
    recorded_steering_then_interrupt: "2.1.332/steering-then-interrupt.jsonl",
    recorded_subagent_async: "2.1.332/subagent-async.jsonl",
    recorded_text_turn: "2.1.332/text-turn.jsonl",
    recorded_thinking_tools_turn: "2.1.332/thinking-tools-turn.jsonl",
    recorded_thinking_turn: "2.1.332/thinking-turn.jsonl",
    recorded_tool_failure: "2.1.332/tool-failure.jsonl",
}
