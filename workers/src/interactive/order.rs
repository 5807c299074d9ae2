//! Records in the order of the story. A CLI may write the result of a call before the call itself.

use std::collections::HashSet;

use claw_runtime::session::ContentBlock;

use crate::fact::Fact;

/// Results that wait for their calls.
#[derive(Default)]
pub(super) struct InOrder {
    called: HashSet<String>,
    early: Vec<Fact>,
}

impl InOrder {
    /// The fact, and what waited for it; nothing while it has to wait itself.
    pub(super) fn pass(&mut self, fact: Fact) -> Vec<Fact> {
        match &fact {
            Fact::ToolResult { id, .. } if !self.called.remove(id) => {
                self.early.push(fact);
                Vec::new()
            }
            Fact::Block { content: ContentBlock::ToolUse { id, .. }, .. } => {
                let id = id.clone();
                let waited = self.early.iter().position(|early| is_result_of(early, &id));
                if let Some(at) = waited {
                    return vec![fact, self.early.remove(at)];
                }
                self.called.insert(id);
                vec![fact]
            }
            _ => vec![fact],
        }
    }

    /// What still waits, when nothing else is to come: its calls were said before we listened.
    pub(super) fn flush(&mut self) -> Vec<Fact> {
        std::mem::take(&mut self.early)
    }
}

fn is_result_of(fact: &Fact, call: &str) -> bool {
    matches!(fact, Fact::ToolResult { id, .. } if id == call)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Fact {
        Fact::Block {
            message: "m".into(),
            block: None,
            content: ContentBlock::ToolUse {
                id: id.into(),
                name: "Bash".into(),
                input: "{}".into(),
            },
            model: None,
            usage: None,
            stop_reason: None,
            aborted: false,
        }
    }

    fn result(id: &str) -> Fact {
        Fact::ToolResult {
            id: id.into(),
            output: String::new(),
            is_error: false,
            facts: None,
            denied: None,
        }
    }

    #[test]
    fn a_result_waits_for_its_call_and_for_no_other() {
        let mut order = InOrder::default();
        assert_eq!(order.pass(result("a")), []);
        assert_eq!(order.pass(call("b")), [call("b")]);
        assert_eq!(order.pass(result("b")), [result("b")]);
        assert_eq!(order.pass(call("a")), [call("a"), result("a")]);
        assert_eq!(order.flush(), []);
    }

    #[test]
    fn a_result_without_a_call_is_not_lost() {
        let mut order = InOrder::default();
        assert_eq!(order.pass(result("a")), []);
        assert_eq!(order.flush(), [result("a")]);
    }
}
