use std::time::Duration;

use claw_runtime::session::ContentBlock;
use claw_runtime::tools::ToolFacts;

use super::{facts_of, fixture};
use crate::fact::{AgentEnd, DeniedBy, Fact, FailureKind, PromptSource};

/// The shape of a transcript: one word a fact.
fn shape(name: &str) -> Vec<&'static str> {
    let word = |fact: &Fact| match fact {
        Fact::Prompt { source, .. } => match source {
            PromptSource::Typed => "typed",
            PromptSource::Queued => "queued",
            PromptSource::Notification => "notification",
            PromptSource::Hidden => "hidden",
            PromptSource::Summary => "summary",
            PromptSource::Command => "command",
        },
        Fact::Block { content, .. } => match content {
            ContentBlock::Text { .. } => "text",
            ContentBlock::Thinking { .. } => "thinking",
            ContentBlock::ToolUse { .. } => "tool",
            _ => "block",
        },
        Fact::ToolResult { is_error: true, .. } => "error",
        Fact::ToolResult { .. } => "result",
        Fact::ApiFailure { .. } => "failure",
        Fact::Interrupted { .. } => "interrupted",
        Fact::TurnDuration { .. } => "end",
        Fact::Enqueued { .. } => "enqueued",
        Fact::Removed { absorbed: true, .. } => "absorbed",
        Fact::Removed { .. } => "removed",
        Fact::Dequeued => "dequeued",
        Fact::Compacted { .. } => "compacted",
        Fact::Notice { .. } => "notice",
        Fact::PlanFile { .. } => "plan file",
        Fact::CommandOutput { .. } => "output",
        Fact::AgentSpawned { .. } => "spawned",
        Fact::AgentDone { .. } => "done",
        other => panic!("{other:?}"),
    };
    facts_of(name).iter().map(word).collect()
}

#[test]
fn the_facts_of_every_story_in_order() {
    let tools = [
        "typed", "thinking", "text", "tool", "result", "text", "tool", "result", "tool", "result",
        "tool", "result", "text", "end",
    ];
    let table: &[(&str, &[&str])] = &[
        ("2.1.332/text-turn", &["typed", "text", "end"]),
        ("2.1.197/text-turn", &["typed", "text", "end"]),
        ("2.1.332/thinking-turn", &["typed", "thinking", "text", "end"]),
        ("2.1.332/thinking-tools-turn", &tools),
        ("2.1.197/thinking-tools-turn", &tools),
        ("2.1.332/permission-denied", &["typed", "text", "tool", "error", "text", "end"]),
        ("2.1.197/permission-denied", &["typed", "text", "tool", "error", "text", "end"]),
        ("2.1.332/permission-denied-interrupt", &["typed", "text", "tool", "error", "interrupted"]),
        (
            "2.1.332/permission-allowed-updated-input",
            &["typed", "text", "tool", "result", "text", "end"],
        ),
        ("2.1.332/ask-user-question", &["typed", "text", "tool", "result", "text", "end"]),
        (
            "2.1.332/exit-plan-mode",
            &["typed", "plan file", "text", "tool", "result", "text", "end"],
        ),
        ("2.1.332/interrupt-text", &["typed", "text", "interrupted"]),
        ("2.1.197/interrupt-text", &["typed", "text", "interrupted"]),
        ("2.1.332/interrupt-tool", &["typed", "tool", "error", "interrupted"]),
        ("2.1.332/interrupt-permission-dialog", &["typed", "text", "tool", "error", "interrupted"]),
        ("2.1.332/api-error-401", &["typed", "failure"]),
        // The sentinel of a normal end comes all the same.
        ("2.1.197/api-error-401", &["typed", "failure", "end"]),
        ("2.1.332/api-error-529", &["typed", "failure"]),
        ("2.1.332/rate-limit-api-key", &["typed", "failure"]),
        ("2.1.332/rate-limit-account", &["typed", "failure", "notice"]),
        ("2.1.332/mid-stream-error", &["typed", "text", "failure"]),
        (
            "2.1.332/max-tokens",
            &["typed", "text", "hidden", "text", "hidden", "text", "hidden", "text", "failure"],
        ),
        ("2.1.332/refusal", &["typed", "text", "notice", "hidden", "text", "end"]),
        (
            "2.1.332/compaction",
            &[
                "typed",
                "text",
                "end",
                "typed",
                "thinking",
                "text",
                "end",
                "compacted",
                "summary",
                "hidden",
                "command",
                "output",
                "typed",
                "text",
                "end",
            ],
        ),
        (
            "2.1.332/steering-absorbed",
            &["typed", "tool", "enqueued", "absorbed", "result", "queued", "text", "end"],
        ),
        (
            "2.1.197/steering-absorbed",
            &[
                "typed", "tool", "enqueued", "removed", "result", "absorbed", "queued", "text",
                "end",
            ],
        ),
        (
            "2.1.332/steering-queued",
            &[
                "typed", "enqueued", "enqueued", "text", "dequeued", "dequeued", "end", "queued",
                "queued", "text", "end",
            ],
        ),
        (
            "2.1.332/steering-then-interrupt",
            &["typed", "enqueued", "dequeued", "text", "interrupted", "queued", "text", "end"],
        ),
        (
            "2.1.332/subagent-async",
            &[
                "typed",
                "text",
                "tool",
                "spawned",
                "result",
                "text",
                "end",
                "enqueued",
                "dequeued",
                "hidden",
                "notification",
                "done",
            ],
        ),
    ];
    for (name, expected) in table {
        assert_eq!(shape(name), *expected, "{name}");
    }
}

#[test]
fn no_record_of_a_real_session_is_unknown() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/claude/transcripts");
    let mut files = 0;
    for version in ["2.1.197", "2.1.332"] {
        for entry in std::fs::read_dir(format!("{folder}/{version}")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let name = format!("{version}/{}", name.trim_end_matches(".jsonl"));
            for record in fixture(&name) {
                assert!(record.session_id.is_some() || record.facts.is_empty(), "{name}");
                for fact in record.facts {
                    assert!(!matches!(fact, Fact::Unknown { .. }), "{name}: {fact:?}");
                }
            }
            files += 1;
        }
    }
    assert!(files > 25);
}

#[test]
fn the_blocks_of_a_message_share_its_usage() {
    let mut indices = Vec::new();
    let mut usages = Vec::new();
    let mut first = None;
    for fact in facts_of("2.1.332/thinking-tools-turn") {
        if let Fact::Block { message, block, usage, .. } = fact
            && first.get_or_insert_with(|| message.clone()) == &message
        {
            indices.push(block);
            usages.push(usage.unwrap());
        }
    }
    assert_eq!(indices, [Some(0), Some(1), Some(2)]);
    assert!(usages.iter().all(|usage| usage == &usages[0]));
    assert_eq!(usages[0].context_tokens(), 2030);
}

#[test]
fn the_facts_of_the_tools() {
    let tools: Vec<ToolFacts> = facts_of("2.1.332/thinking-tools-turn")
        .into_iter()
        .filter_map(|fact| match fact {
            Fact::ToolResult { facts, .. } => facts,
            _ => None,
        })
        .collect();
    assert!(matches!(tools[0], ToolFacts::Command { lines: Some(2), cancelled: false, .. }));
    assert!(matches!(tools[1], ToolFacts::Diff { created: true, added: 2, removed: 0, .. }));
    assert!(matches!(tools[2], ToolFacts::Read { first_line: 1, lines: 3, total_lines: 3, .. }));
    let ToolFacts::Diff { diff, added: 1, removed: 1, created: false, .. } = &tools[3] else {
        panic!("{tools:?}")
    };
    assert_eq!(diff, "@@ -1,2 +1,2 @@\n line one\n-line two\n+line 2\n");
}

#[test]
fn who_refused_in_real_sessions() {
    let denied = |name: &str| {
        facts_of(name).into_iter().find_map(|fact| match fact {
            Fact::ToolResult { denied, .. } => Some(denied),
            _ => None,
        })
    };
    assert_eq!(denied("2.1.332/permission-denied"), Some(Some(DeniedBy::Rule)));
    assert_eq!(denied("2.1.332/permission-denied-interrupt"), Some(Some(DeniedBy::Person)));
    assert_eq!(denied("2.1.332/interrupt-tool"), Some(Some(DeniedBy::Person)));
    assert_eq!(denied("2.1.332/tool-failure"), Some(None));
}

#[test]
fn interrupts_and_what_was_cut() {
    let in_tool = |name: &str| {
        facts_of(name).into_iter().find_map(|fact| match fact {
            Fact::Interrupted { in_tool } => Some(in_tool),
            _ => None,
        })
    };
    assert_eq!(in_tool("2.1.332/interrupt-text"), Some(false));
    assert_eq!(in_tool("2.1.197/interrupt-text"), Some(false));
    assert_eq!(in_tool("2.1.332/interrupt-tool"), Some(true));
    let cut = facts_of("2.1.332/interrupt-text")
        .into_iter()
        .any(|fact| matches!(fact, Fact::Block { aborted: true, .. }));
    assert!(cut);
}

#[test]
fn the_limit_of_an_account_has_its_end() {
    let facts = facts_of("2.1.332/rate-limit-account");
    let Fact::ApiFailure { kind, status, quota: Some(quota), .. } = &facts[1] else {
        panic!("{facts:?}")
    };
    assert_eq!((kind, *status), (&FailureKind::UsageLimit, Some(429)));
    assert_eq!(quota.resets_at, Some(1_796_090_408));
    assert_eq!(quota.kind.as_deref(), Some("five_hour"));
    assert!(quota.is_hard());
    let facts = facts_of("2.1.332/rate-limit-api-key");
    assert!(matches!(&facts[1], Fact::ApiFailure { kind: FailureKind::RateLimit, .. }));
}

#[test]
fn a_compaction_and_a_sub_agent() {
    assert!(facts_of("2.1.332/compaction").contains(&Fact::Compacted {
        automatic: false,
        before_tokens: 2080,
        after_tokens: 2918
    }));
    let facts = facts_of("2.1.332/subagent-async");
    let agent = "a86626a257a458d63".to_owned();
    let tool_use_id = Some("toolu_mock_e3a9a24fc17d".to_owned());
    assert!(facts.contains(&Fact::AgentSpawned {
        agent: agent.clone(),
        tool_use_id: tool_use_id.clone(),
        kind: None,
        background: true
    }));
    assert!(facts.contains(&Fact::AgentDone {
        agent,
        tool_use_id,
        status: AgentEnd::Completed,
        summary: "Agent \"Small job\" finished".into()
    }));
    assert!(
        facts.contains(&Fact::TurnDuration {
            duration: Duration::from_millis(911),
            pending_agents: 1
        })
    );
}

#[test]
fn a_prompt_has_the_id_of_its_hooks() {
    let records = fixture("2.1.332/text-turn");
    let prompt = records.iter().find(|record| !record.facts.is_empty()).unwrap();
    assert!(prompt.prompt_id.is_some());
    assert!(matches!(
        &prompt.facts[0],
        Fact::Prompt { prompt_id, source: PromptSource::Typed, .. } if *prompt_id == prompt.prompt_id
    ));
}
