//! Stories with native deltas: every stream-json capture.

use insta::assert_snapshot;

use super::support::{captured, outline, told};

/// Events and session of each turn of a capture.
fn stories(path: &str) -> String {
    let turns = captured(path).into_iter().map(|(facts, ending)| {
        let (book, messages) = told(facts, &ending);
        format!("{}\n\n{}", book.text(), outline(&messages))
    });
    turns.collect::<Vec<_>>().join("\n--\n\n")
}

macro_rules! captures {
    ($($name:ident: $path:literal,)*) => {$(
        #[test]
        fn $name() {
            assert_snapshot!(stories($path));
        }
    )*};
}

captures! {
    native_thinking_and_text_197: "2.1.197/text-and-thinking-two-turns.jsonl",
    native_tools_197: "2.1.197/tools-permission-allowed.jsonl",
    native_api_retry: "2.1.332/api-retry-401.jsonl",
    native_question_to_the_person: "2.1.332/ask-user-question.jsonl",
    native_interrupt: "2.1.332/interrupt.jsonl",
    native_without_permission_tool: "2.1.332/no-permission-tool.jsonl",
    native_permission_denied: "2.1.332/permission-denied.jsonl",
    native_steering: "2.1.332/steering.jsonl",
    native_thinking_and_text: "2.1.332/text-and-thinking-two-turns.jsonl",
    native_tools: "2.1.332/tools-permission-allowed.jsonl",
}
