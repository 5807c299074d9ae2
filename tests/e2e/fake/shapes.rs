//! Keys of hook payloads and records of the stand-in, against what the real CLI of the same version
//! wrote: a key that the real one always writes must be there, and none that it never writes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

type Keys = BTreeSet<String>;

/// Keys of one kind: in every example, and in any.
struct Shape {
    always: Keys,
    ever: Keys,
}

/// Fails when one of these does not look like the real ones of its kind. Kinds without an example
/// are left out.
#[track_caller]
pub fn assert_shapes(version: &str, hooks: &[Value], records: &[Value]) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/claude");
    let number = format!("2.1.{version}");
    let real_hooks = documents(&fixtures.join("hooks").join(&number));
    let real_records = documents(&fixtures.join("transcripts").join(&number));
    compare("hook", &shapes(&real_hooks, hook_kind), hooks, hook_kind);
    compare("record", &shapes(&real_records, record_kind), records, record_kind);
}

#[track_caller]
fn compare(what: &str, real: &BTreeMap<String, Shape>, ours: &[Value], kind: fn(&Value) -> String) {
    let mut wrong = Vec::new();
    for one in ours {
        let Some(shape) = real.get(&kind(one)) else { continue };
        let keys = keys(one);
        let missing: Vec<_> = shape.always.difference(&keys).collect();
        let invented: Vec<_> = keys.difference(&shape.ever).collect();
        if !missing.is_empty() || !invented.is_empty() {
            let name = kind(one);
            wrong.push(format!("{what} {name}: lacks {missing:?}, invents {invented:?}"));
        }
    }
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn shapes(examples: &[Value], kind: fn(&Value) -> String) -> BTreeMap<String, Shape> {
    let mut shapes: BTreeMap<String, Shape> = BTreeMap::new();
    for example in examples {
        let keys = keys(example);
        let shape = shapes
            .entry(kind(example))
            .or_insert_with(|| Shape { always: keys.clone(), ever: Keys::new() });
        shape.always.retain(|key| keys.contains(key));
        shape.ever.extend(keys);
        if kind(example).starts_with("SessionEnd") {
            // In the examples only where a prompt had been sent.
            shape.ever.insert("prompt_id".to_owned());
        }
    }
    shapes
}

/// Keys of the document, and those of the parts that have a form of their own.
fn keys(document: &Value) -> Keys {
    let mut all = Keys::new();
    for (key, value) in document.as_object().into_iter().flatten() {
        // Where the text lives on the machine of the fixtures.
        if key == "slug" {
            continue;
        }
        all.insert(key.clone());
        if matches!(key.as_str(), "message" | "attachment" | "effort") {
            for (inner, value) in value.as_object().into_iter().flatten() {
                all.insert(format!("{key}.{inner}"));
                if inner == "usage" {
                    let usage = value.as_object().into_iter().flatten();
                    all.extend(usage.map(|(name, _)| format!("{key}.{inner}.{name}")));
                }
            }
        }
    }
    all
}

fn hook_kind(payload: &Value) -> String {
    let event = payload["hook_event_name"].as_str().unwrap_or_default();
    let about = ["tool_name", "source", "reason"].iter().find_map(|key| payload[key].as_str());
    format!("{event} {}", about.unwrap_or_default())
}

fn record_kind(record: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&record["type"]);
    let content = &record["message"]["content"];
    let detail = match kind.as_str() {
        "attachment" => text(&record["attachment"]["type"]),
        "system" => text(&record["subtype"]),
        "queue-operation" => text(&record["operation"]),
        "assistant" if record["message"]["model"] == "<synthetic>" => {
            format!("synthetic {}", text(&record["error"]))
        }
        "assistant" if record["isAbortedMidStream"] == true => "aborted".to_owned(),
        "assistant" => text(&content[0]["type"]),
        "user" if record["isMeta"] == true => "meta".to_owned(),
        "user" if record["isCompactSummary"] == true => "summary".to_owned(),
        "user" if content.is_string() => text(&record["promptSource"]),
        "user" if content[0]["type"] == "tool_result" => {
            let outcome = if record["toolDenialKind"].is_string() { "denied" } else { "done" };
            format!("result {outcome} {}", record["toolUseResult"].is_object())
        }
        "user" => "interrupt".to_owned(),
        _ => String::new(),
    };
    format!("{kind} {detail}")
}

/// Every document of a folder: JSON files, or one on each line.
fn documents(folder: &PathBuf) -> Vec<Value> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap_or_else(|_| panic!("{}", folder.display())) {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        if path.extension().is_some_and(|end| end == "jsonl") {
            found.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        } else {
            found.push(serde_json::from_str(&text).unwrap());
        }
    }
    found
}
