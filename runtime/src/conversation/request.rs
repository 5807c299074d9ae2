//! What of the session is sent: everything but answers that a later answer replaced. A backend with
//! a session of its own is shown ours as it is: it knows itself what it has.

use std::sync::Arc;

use super::ConversationRuntime;
use crate::api::{ApiClient, ApiRequest};
use crate::session::{ConversationMessage, MessageRole};
use crate::tools::ToolExecutor;

impl<C: ApiClient, T: ToolExecutor> ConversationRuntime<C, T> {
    pub(super) fn request(&self) -> ApiRequest {
        ApiRequest {
            model: self.model.clone(),
            system: Arc::clone(&self.system),
            messages: if self.client.owns_context() {
                self.session().messages.clone()
            } else {
                without_replaced(&self.session().messages)
            },
            tools: Arc::clone(&self.specs),
            session_id: self.session().id.clone(),
            fork_of: self.session().fork.as_ref().map(|fork| fork.parent_session_id.clone()),
            thinking: self.thinking,
            permission_mode: self.policy.mode(),
        }
    }
}

/// Drops cut-off answers (with the results of their calls) that were asked for again: those that are
/// followed by another assistant message, or by nothing at all. The session keeps them.
fn without_replaced(messages: &[Arc<ConversationMessage>]) -> Vec<Arc<ConversationMessage>> {
    let mut sent: Vec<Arc<ConversationMessage>> = Vec::with_capacity(messages.len());
    let mut index = 0;
    while index < messages.len() {
        let message = &messages[index];
        if message.role == MessageRole::Assistant && message.partial.is_some() {
            let results = messages[index + 1..]
                .iter()
                .take_while(|next| next.role == MessageRole::Tool)
                .count();
            let next = index + 1 + results;
            if messages.get(next).is_none_or(|next| next.role == MessageRole::Assistant) {
                index = next;
                continue;
            }
        }
        sent.push(Arc::clone(message));
        index += 1;
    }
    sent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{ContentBlock, PartialReason};

    fn assistant(text: &str, partial: Option<PartialReason>) -> Arc<ConversationMessage> {
        let mut message = ConversationMessage::new(
            MessageRole::Assistant,
            vec![ContentBlock::Text { text: text.into() }],
        );
        message.partial = partial;
        Arc::new(message)
    }

    fn user(text: &str) -> Arc<ConversationMessage> {
        Arc::new(ConversationMessage::user(text))
    }

    fn check(messages: &[Arc<ConversationMessage>], expected: &[&str]) {
        let sent: Vec<String> = without_replaced(messages).iter().map(|m| m.text()).collect();
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_cut_answer_is_sent_unless_it_was_asked_for_again() {
        let cut = Some(PartialReason::Cut);
        check(&[user("a"), assistant("half", cut)], &["a"]);
        check(&[user("a"), assistant("half", cut), assistant("whole", None)], &["a", "whole"]);
        check(&[user("a"), assistant("half", cut), user("go on")], &["a", "half", "go on"]);
        check(&[user("a"), assistant("whole", None), user("b")], &["a", "whole", "b"]);
    }
}
