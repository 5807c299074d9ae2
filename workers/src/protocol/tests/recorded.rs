//! Transcripts of the real CLI, with the hooks of each turn as early and as late as they can come.

use super::super::{HookSeen, Seen};
use super::rig::*;
use crate::fact::{Fact, PromptSource};
use crate::transcript::Record;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hooks {
    Lost,
    /// The whole turn is told by hooks before its records are read; what was typed into it came
    /// before its end.
    Early,
    /// The end is told by a hook after its record.
    Late,
}

fn facts(path: &str) -> Vec<Fact> {
    let path =
        format!("{}/../tests/fixtures/claude/transcripts/{path}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let records = text.lines().map(|line| Record::parse(line.as_bytes()).unwrap());
    records.filter(|record| !record.sidechain).flat_map(|record| record.facts).collect()
}

/// The hook at the end of the turn that begins with these facts.
fn end_hook(id: &str, turn: &[Fact]) -> Option<HookSeen> {
    let mut last = String::new();
    for fact in turn {
        match fact {
            Fact::Block { content: claw_runtime::session::ContentBlock::Text { text }, .. } => {
                last.clone_from(text);
            }
            Fact::TurnDuration { .. } => return Some(stop(id, &last)),
            Fact::ApiFailure { .. } => return Some(stop_failure(id, "server_error")),
            Fact::Interrupted { .. } => return None,
            _ => {}
        }
    }
    None
}

fn replay(path: &str, hooks: Hooks) -> Rig {
    let mut rig = Rig::ready();
    let facts = facts(path);
    let mut ended = None;
    for (at, fact) in facts.iter().enumerate() {
        if let Fact::Prompt { prompt_id: Some(id), text, source } = fact {
            let end = end_hook(id, &facts[at + 1..]);
            match source {
                PromptSource::Typed => rig.submit(text),
                // What was queued was typed before.
                PromptSource::Queued | PromptSource::Notification => {}
                _ => {
                    rig.record(fact.clone());
                    continue;
                }
            }
            if hooks != Hooks::Lost && *source != PromptSource::Queued {
                rig.hook(submitted(id, text));
            }
            ended = end.filter(|_| hooks != Hooks::Lost);
        }
        match fact {
            Fact::Enqueued { content } if !content.starts_with('<') => rig.steer(9, content),
            Fact::Compacted { .. } => {
                rig.see(Seen::Compact);
                rig.pass(ms(300));
            }
            Fact::Interrupted { .. } => rig.see(Seen::Interrupt),
            _ => {}
        }
        let typed_later = facts[at + 1..].iter().any(|fact| matches!(fact, Fact::Enqueued { .. }));
        if hooks == Hooks::Early && !typed_later {
            ended.take().into_iter().for_each(|hook| rig.hook(hook));
        }
        rig.record(fact.clone());
        if matches!(fact, Fact::TurnDuration { .. } | Fact::ApiFailure { .. }) {
            ended.take().into_iter().for_each(|hook| rig.hook(hook));
        }
    }
    rig.pass(ms(60_000));
    rig
}

/// The kinds of the ends, in order.
fn kinds(rig: &Rig) -> String {
    let kind = |end: String| {
        let words: Vec<&str> =
            end.split(' ').skip(1).take_while(|word| !word.ends_with('.')).collect();
        let many = if words[0] == "unasked" { 2 } else { 1 };
        words[..many].join(" ")
    };
    rig.ends().into_iter().map(kind).collect::<Vec<_>>().join(", ")
}

#[test]
fn every_recorded_session_ends_its_turns_as_they_ended() {
    for (path, ends) in [
        ("2.1.332/text-turn.jsonl", "completed"),
        ("2.1.197/text-turn.jsonl", "completed"),
        ("2.1.332/thinking-tools-turn.jsonl", "completed"),
        ("2.1.197/thinking-tools-turn.jsonl", "completed"),
        ("2.1.332/parallel-tools.jsonl", "completed"),
        ("2.1.332/permission-denied.jsonl", "completed"),
        ("2.1.332/permission-denied-interrupt.jsonl", "Interrupted"),
        ("2.1.332/interrupt-text.jsonl", "Interrupted"),
        ("2.1.197/interrupt-text.jsonl", "Interrupted"),
        ("2.1.332/interrupt-tool.jsonl", "Interrupted"),
        ("2.1.332/interrupt-permission-dialog.jsonl", "Interrupted"),
        ("2.1.332/api-error-401.jsonl", "failed"),
        ("2.1.197/api-error-401.jsonl", "failed"),
        ("2.1.332/api-error-529.jsonl", "failed"),
        ("2.1.332/mid-stream-error.jsonl", "failed"),
        ("2.1.332/max-tokens.jsonl", "failed"),
        ("2.1.332/rate-limit-account.jsonl", "failed"),
        ("2.1.332/rate-limit-api-key.jsonl", "failed"),
        ("2.1.332/refusal.jsonl", "completed"),
        ("2.1.332/compaction.jsonl", "completed, completed, Compacted, completed"),
        ("2.1.332/steering-absorbed.jsonl", "completed"),
        ("2.1.197/steering-absorbed.jsonl", "completed"),
        ("2.1.332/steering-queued.jsonl", "completed"),
        ("2.1.332/steering-then-interrupt.jsonl", "Interrupted, unasked completed"),
    ] {
        for hooks in [Hooks::Lost, Hooks::Early, Hooks::Late] {
            let rig = replay(path, hooks);
            assert_eq!(kinds(&rig), ends, "{path} {hooks:?} {:?}", rig.told());
        }
    }
}

#[test]
fn only_the_recorded_limit_of_an_account_is_cancelled() {
    for (path, escs) in [
        ("rate-limit-account", 1),
        ("rate-limit-api-key", 0),
        ("api-error-401", 0),
        ("text-turn", 0),
    ] {
        let rig = replay(&format!("2.1.332/{path}.jsonl"), Hooks::Early);
        assert_eq!(rig.wrote().iter().filter(|keys| *keys == "\x1b").count(), escs, "{path}");
    }
}

#[test]
fn the_turn_that_a_recorded_sub_agent_brings_about_is_not_ours() {
    for hooks in [Hooks::Lost, Hooks::Early, Hooks::Late] {
        let rig = replay("2.1.332/subagent-async.jsonl", hooks);
        let began = rig
            .told()
            .iter()
            .position(|told| told.starts_with("unasked <task-notification>"))
            .unwrap();
        let ours = rig.told().iter().position(|told| told.starts_with("end completed")).unwrap();
        assert!(ours < began, "{hooks:?}");
        let notes = rig.facts.iter().filter(|(fact, _)| {
            matches!(fact, Fact::Prompt { source: PromptSource::Notification, .. })
        });
        assert!(notes.into_iter().all(|(_, unasked)| *unasked));
    }
}

#[test]
fn all_that_was_said_in_a_recorded_turn_of_ours_is_marked_as_ours() {
    for path in [
        "2.1.332/steering-queued.jsonl",
        "2.1.197/steering-absorbed.jsonl",
        "2.1.332/thinking-tools-turn.jsonl",
    ] {
        for hooks in [Hooks::Lost, Hooks::Early, Hooks::Late] {
            let rig = replay(path, hooks);
            let words: Vec<bool> = rig
                .facts
                .iter()
                .filter(|(fact, _)| matches!(fact, Fact::Block { .. } | Fact::ToolResult { .. }))
                .map(|(_, unasked)| *unasked)
                .collect();
            assert!(!words.is_empty() && words.iter().all(|unasked| !unasked), "{path} {hooks:?}");
        }
    }
}
