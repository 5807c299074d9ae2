//! `TodoWrite`: the model's list of what it is doing. It touches nothing; the list is in the facts.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::row::{CallContext, Tool};
use super::scope::Scope;
use super::{Grant, TodoItem, TodoStatus, ToolFacts, ToolOutcome};
use crate::permissions::PermissionLevel;

pub(super) struct TodoWrite;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The whole list as it is now; it replaces the one before.
    todos: Vec<TodoItem>,
}

impl Tool for TodoWrite {
    type Input = Input;
    const NAME: &'static str = "TodoWrite";
    const DESCRIPTION: &'static str = "Keeps the list of steps of a longer piece of work, which the person sees. Send the whole list each time. Keep exactly one item in_progress while you work, and mark items completed as soon as they are done. Not needed for a single simple step.";
    const LEVEL: PermissionLevel = PermissionLevel::None;

    fn grant(_input: &Input) -> Grant {
        Grant { key: Self::NAME.into(), words: "updating the todo list".into() }
    }

    async fn run(_scope: Arc<Scope>, input: Input, _call: CallContext) -> ToolOutcome {
        update(input.todos)
    }
}

fn update(items: Vec<TodoItem>) -> ToolOutcome {
    if let Some(at) = items.iter().position(|item| item.content.trim().is_empty()) {
        return ToolOutcome::error(format!(
            "todo {} has no content; say what is to be done and send the whole list again",
            at + 1
        ));
    }
    let count = |status| items.iter().filter(|item| item.status == status).count();
    let active = count(TodoStatus::InProgress);
    let mut output = format!(
        "The todo list has {} items: {} completed, {active} in progress, {} pending.",
        items.len(),
        count(TodoStatus::Completed),
        count(TodoStatus::Pending)
    );
    if active > 1 {
        output.push_str(" Note: keep one item in progress at a time.");
    }
    ToolOutcome { facts: Some(ToolFacts::Todo { items }), ..ToolOutcome::ok(output) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(content: &str, status: TodoStatus) -> TodoItem {
        TodoItem { content: content.into(), active_form: String::new(), status }
    }

    #[test]
    fn the_list_is_counted_and_more_than_one_active_item_is_noted() {
        let outcome = update(vec![
            item("a", TodoStatus::Completed),
            item("b", TodoStatus::InProgress),
            item("c", TodoStatus::InProgress),
        ]);
        assert_eq!(
            outcome.output,
            "The todo list has 3 items: 1 completed, 2 in progress, 0 pending. Note: keep one item in progress at a time."
        );
        assert!(matches!(outcome.facts, Some(ToolFacts::Todo { items }) if items.len() == 3));
    }

    #[test]
    fn an_item_without_content_is_refused() {
        assert!(update(vec![item(" ", TodoStatus::Pending)]).is_error);
    }
}
