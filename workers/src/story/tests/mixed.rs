//! Any mix of what is live and what is recorded tells the same story.

use std::sync::OnceLock;

use claw_runtime::session::ContentBlock;
use proptest::prelude::*;

use super::support::{answer, captured, completed, is_live, told};
use super::transcripts::{TRANSCRIPTS, recorded};
use crate::fact::Fact;
use crate::story::Ending;

const CAPTURES: &[&str] = &[
    "2.1.197/text-and-thinking-two-turns.jsonl",
    "2.1.197/tools-permission-allowed.jsonl",
    "2.1.332/ask-user-question.jsonl",
    "2.1.332/interrupt.jsonl",
    "2.1.332/permission-denied.jsonl",
    "2.1.332/steering.jsonl",
    "2.1.332/text-and-thinking-two-turns.jsonl",
    "2.1.332/tools-permission-allowed.jsonl",
];

/// Two messages of several blocks of the same kind, which no capture has.
fn crowded() -> Vec<Fact> {
    let mut facts = Vec::new();
    for message in ["one", "two", "three"] {
        facts.push(Fact::MessageBegan { message: message.to_owned(), model: None });
        for (block, text) in ["First.", "Second words.", "Third."].into_iter().enumerate() {
            let message = message.to_owned();
            for part in text.split_inclusive(' ') {
                let (message, text) = (message.clone(), part.to_owned());
                facts.push(Fact::TextDelta { message, block, text });
            }
            let content = ContentBlock::Text { text: text.to_owned() };
            facts.push(Fact::BlockEnded { message: message.clone(), block });
            facts.push(Fact::Block {
                message,
                block: Some(block),
                content,
                model: None,
                usage: None,
                stop_reason: None,
                aborted: false,
            });
        }
        let message = message.to_owned();
        facts.push(Fact::MessageEnded { message, stop_reason: Some("max_tokens".to_owned()) });
    }
    facts
}

/// Records with the deltas that a tap would have seen before each.
fn with_deltas(records: Vec<Fact>) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut open: Option<(String, Option<String>)> = None;
    for record in records {
        if let Fact::Block { message, block, content, stop_reason, .. } = &record {
            let block =
                block.unwrap_or(usize::from(open.as_ref().is_some_and(|open| open.0 == *message)));
            if open.as_ref().is_none_or(|open| open.0 != *message) {
                close(&mut open, &mut facts);
                open = Some((message.clone(), stop_reason.clone()));
                facts.push(Fact::MessageBegan { message: message.clone(), model: None });
            }
            stream(message, block, content, &mut facts);
        }
        if matches!(record, Fact::ToolResult { .. } | Fact::Prompt { .. }) {
            close(&mut open, &mut facts);
        }
        facts.push(record);
    }
    close(&mut open, &mut facts);
    facts
}

fn close(open: &mut Option<(String, Option<String>)>, facts: &mut Vec<Fact>) {
    if let Some((message, stop_reason)) = open.take() {
        facts.push(Fact::MessageEnded { message, stop_reason });
    }
}

fn stream(message: &str, block: usize, content: &ContentBlock, facts: &mut Vec<Fact>) {
    let message = || message.to_owned();
    let parts = |text: &str| -> Vec<String> {
        text.chars().collect::<Vec<_>>().chunks(12).map(|part| part.iter().collect()).collect()
    };
    match content {
        ContentBlock::Text { text } => {
            facts.extend(parts(text).into_iter().map(|text| Fact::TextDelta {
                message: message(),
                block,
                text,
            }));
        }
        ContentBlock::Thinking { thinking, .. } => {
            facts.push(Fact::ThinkingBegan { message: message(), block });
            facts.extend(parts(thinking).into_iter().map(|text| Fact::ThinkingDelta {
                message: message(),
                block,
                text,
            }));
        }
        ContentBlock::ToolUse { id, name, .. } => {
            let (id, name) = (id.clone(), name.clone());
            facts.push(Fact::ToolUseBegan { message: message(), block, id, name });
        }
        ContentBlock::RedactedThinking { .. } | ContentBlock::ToolResult { .. } => {}
    }
    facts.push(Fact::BlockEnded { message: message(), block });
}

/// Live facts, records, and how the turn ended.
type Turn = (Vec<Fact>, Vec<Fact>, Ending);

fn turns() -> &'static [Turn] {
    static TURNS: OnceLock<Vec<Turn>> = OnceLock::new();
    TURNS.get_or_init(read_turns)
}

fn read_turns() -> Vec<Turn> {
    let turns = CAPTURES.iter().flat_map(|path| captured(path));
    let transcripts = TRANSCRIPTS.iter().flat_map(|path| recorded(path));
    let transcripts = transcripts.map(|(records, ending)| (with_deltas(records), ending));
    let turns = turns.chain([(crowded(), completed())]).chain(transcripts);
    turns
        .map(|(facts, ending)| {
            let (live, records) = facts.into_iter().partition(is_live);
            (live, records, ending)
        })
        .collect()
}

/// One order of both, each in its own order.
fn merged(live: Vec<Fact>, records: Vec<Fact>, order: &[bool]) -> Vec<Fact> {
    let (mut live, mut records) = (live.into_iter(), records.into_iter());
    let mut order = order.iter().cycle();
    let mut facts = Vec::new();
    loop {
        let next = if *order.next().unwrap() {
            live.next().or_else(|| records.next())
        } else {
            records.next().or_else(|| live.next())
        };
        match next {
            Some(fact) => facts.push(fact),
            None => return facts,
        }
    }
}

/// Live facts without the end of the stream of one block: what came after it goes on. The last block
/// of a message begins at least: of one that nobody ever heard of, nobody can know.
fn with_cut_block(live: Vec<Fact>, message: usize, block: usize, kept: usize) -> Vec<Fact> {
    let mut names: Vec<String> = Vec::new();
    for fact in &live {
        if let Fact::MessageBegan { message, .. } = fact {
            names.push(message.clone());
        }
    }
    let Some(name) = names.get(message % names.len().max(1)) else { return live };
    let is_last = !live.iter().any(|fact| match fact {
        Fact::TextDelta { message, block: at, .. }
        | Fact::ToolUseBegan { message, block: at, .. } => message == name && *at > block,
        _ => false,
    });
    let kept = kept.max(usize::from(is_last));
    let mut seen = 0;
    let cut = |fact: &Fact| match fact {
        Fact::TextDelta { message, block: at, .. }
        | Fact::ThinkingDelta { message, block: at, .. }
        | Fact::BlockEnded { message, block: at } => message == name && *at == block,
        _ => false,
    };
    live.into_iter()
        .filter(|fact| {
            let hit = cut(fact);
            seen += usize::from(hit);
            !hit || seen <= kept
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_mix_of_live_facts_and_records_gives_the_same_session_and_the_same_text(
        turn in 0..turns().len(),
        order in proptest::collection::vec(any::<bool>(), 1..60),
        live_kept in 0..200_usize,
        cut in (0..4_usize, 0..3_usize, 0..6_usize),
    ) {
        let (live, records, ending) = turns()[turn].clone();
        let (plain, expected) = told(records.clone(), &ending);
        let mut live = with_cut_block(live, cut.0, cut.1, cut.2);
        live.truncate(live_kept);
        let (book, messages) = told(merged(live, records, &order), &ending);
        prop_assert_eq!(&messages, &expected);
        prop_assert_eq!(book.said(), plain.said());
        prop_assert_eq!(book.said(), answer(&expected));
        for kind in ["use ", "result ", "thought ", "use begun "] {
            let count = |book: &super::support::Notebook| {
                book.lines().iter().filter(|line| line.starts_with(kind)).count()
            };
            prop_assert_eq!(count(&book), count(&plain), "{} in {}", kind, book.text());
        }
    }

    /// Whatever of the live facts is missing, the session is what the records say.
    #[test]
    fn whatever_is_missing_of_the_live_facts_the_session_is_the_same(
        turn in 0..turns().len(),
        order in proptest::collection::vec(any::<bool>(), 1..60),
        kept in proptest::collection::vec(any::<bool>(), 1..60),
    ) {
        let (live, records, ending) = turns()[turn].clone();
        let (_, expected) = told(records.clone(), &ending);
        let mut kept = kept.iter().cycle();
        let live = live.into_iter().filter(|_| *kept.next().unwrap()).collect();
        let (_, messages) = told(merged(live, records, &order), &ending);
        prop_assert_eq!(&messages, &expected);
    }
}
