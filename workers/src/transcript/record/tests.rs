mod fixtures;
mod fuzz;
mod kinds;
mod results;

use serde_json::Value;

use super::Record;
use crate::fact::Fact;

fn record(value: &Value) -> Record {
    Record::parse(value.to_string().as_bytes()).unwrap()
}

fn facts(value: &Value) -> Vec<Fact> {
    record(value).facts
}

/// Every record of a real transcript.
fn fixture(name: &str) -> Vec<Record> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/claude/transcripts");
    let text = std::fs::read_to_string(format!("{folder}/{name}.jsonl")).unwrap();
    text.lines().map(|line| Record::parse(line.as_bytes()).unwrap()).collect()
}

fn facts_of(name: &str) -> Vec<Fact> {
    fixture(name).into_iter().flat_map(|record| record.facts).collect()
}
