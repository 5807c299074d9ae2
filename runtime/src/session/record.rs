//! One line of a session file: claw-code's records, with what we add inside them.
//!
//! Our additions are extra fields of known records (`seq`, `timestamp_ms`, `blobs`, `facts`,
//! `partial`, `model`, `redacted_data`, `title`, `spent`), never new record types: the reference
//! refuses a file with a type that it does not know, but reads over fields.

mod decode;
mod encode;

use serde::{Deserialize, Serialize};

pub(super) use decode::{Decoder, Meta, RawMessage, RawRecord, Record, is_foreign_record};
pub(super) use encode::Encoder;

#[derive(Serialize, Deserialize)]
struct ForkBody {
    #[serde(default)]
    parent_session_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch_name: Option<String>,
}

/// Valid JSON that says what a broken tool input was.
fn stand_in_for_broken_input(broken: &str) -> String {
    if broken.trim().is_empty() {
        return "{}".to_owned();
    }
    serde_json::json!({ "incomplete_input": broken }).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::blob::BlobDir;
    use super::super::{ContentBlock, ConversationMessage, MessageRole};
    use super::*;
    use crate::redact::Redactor;

    fn blocks() -> impl Strategy<Value = ContentBlock> {
        let text = ".{0,60}";
        prop_oneof![
            text.prop_map(|text| ContentBlock::Text { text }),
            (text, proptest::option::of(text)).prop_map(|(thinking, signature)| {
                ContentBlock::Thinking { thinking, signature }
            }),
            text.prop_map(|data| ContentBlock::RedactedThinking { data }),
            (text, text, text).prop_map(|(id, name, value)| ContentBlock::ToolUse {
                id,
                name,
                input: serde_json::json!({ "value": value }).to_string(),
            }),
            (text, text, text, any::<bool>()).prop_map(|(id, tool_name, output, is_error)| {
                ContentBlock::ToolResult {
                    tool_use_id: id,
                    tool_name,
                    output,
                    is_error,
                    facts: None,
                }
            }),
        ]
    }

    proptest! {
        #[test]
        fn any_message_survives_its_line(blocks in proptest::collection::vec(blocks(), 1..5)) {
            let dir = tempfile::tempdir().unwrap();
            let mut side = BlobDir::beside(&dir.path().join("s.jsonl"));
            let redactor = Redactor::default();
            let message = ConversationMessage::new(MessageRole::Assistant, blocks);
            let bytes =
                Encoder { redactor: &redactor, blobs: &mut side }.message(&message, 7, 8).unwrap();
            prop_assert_eq!(bytes.iter().position(|byte| *byte == b'\n'), Some(bytes.len() - 1));
            let raw: RawRecord<'_> = serde_json::from_slice(&bytes).unwrap();
            prop_assert_eq!(raw.seq, Some(7));
            let Record::Message(again) = Decoder::new(&side).record(raw) else {
                return Err(TestCaseError::fail("not a message"));
            };
            prop_assert_eq!(again, message);
        }
    }
}
