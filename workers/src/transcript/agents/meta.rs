//! `agent-<id>.meta.json`: which call a sub-agent belongs to, and its kind.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;
use tokio::task::spawn_blocking;

/// Bytes of such a file that are read. It holds a handful of fields.
const LIMIT: u64 = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meta {
    pub agent: String,
    pub tool_use_id: String,
    pub kind: Option<String>,
}

/// All that can be read. A folder that is not there yet has none.
pub(super) async fn read_all(folder: &Path) -> Vec<Meta> {
    let folder = folder.to_path_buf();
    spawn_blocking(move || {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| read(&entry.path())).collect()
    })
    .await
    .unwrap_or_default()
}

fn read(path: &Path) -> Option<Meta> {
    let name = path.file_name()?.to_str()?;
    let agent = name.strip_prefix("agent-")?.strip_suffix(".meta.json")?;
    let mut text = Vec::new();
    File::open(path).ok()?.take(LIMIT).read_to_end(&mut text).ok()?;
    parse(agent, &text)
}

fn parse(agent: &str, text: &[u8]) -> Option<Meta> {
    let value: Value = serde_json::from_slice(text).ok()?;
    let field = |names: [&str; 2]| names.iter().find_map(|name| value[*name].as_str());
    Some(Meta {
        agent: agent.to_owned(),
        tool_use_id: field(["toolUseId", "tool_use_id"])?.to_owned(),
        kind: field(["agentType", "agent_type"]).map(str::to_owned),
    })
}

/// The kind that a call asks for.
pub(super) fn kind_of_input(input: &str) -> Option<String> {
    let value: Value = serde_json::from_str(input).ok()?;
    value["subagent_type"].as_str().map(str::to_owned)
}
