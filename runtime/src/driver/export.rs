//! Writing a conversation as markdown, for people.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::redact::Redactor;
use crate::session::{ContentBlock, MessageRole, Session};

#[derive(Debug, Error)]
#[error("cannot write {path}: {source}; name another file with /export FILE")]
pub(super) struct ExportError {
    path: PathBuf,
    source: std::io::Error,
}

/// Writes the session without secrets to `path`, or to `<session id>.md` in its workspace, readable
/// only by its owner. Never overwrites a file that exists.
pub(super) fn export(
    session: &Session,
    path: Option<PathBuf>,
    redactor: &Redactor,
) -> Result<PathBuf, ExportError> {
    let root = session.workspace_root.clone().unwrap_or_else(|| PathBuf::from("."));
    let path = root.join(path.unwrap_or_else(|| PathBuf::from(format!("{}.md", session.id))));
    write_new(&path, &redactor.redact(&markdown(session)))
        .map_err(|source| ExportError { path: path.clone(), source })?;
    Ok(path)
}

fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()
}

/// The conversation as markdown: prompts, answers, thinking folded, tools with their results.
pub(super) fn markdown(session: &Session) -> String {
    let mut out = format!("# Conversation {}\n", session.id);
    if let Some(fork) = &session.fork {
        let branch = fork.branch_name.as_deref().unwrap_or("unnamed branch");
        out.push_str(&format!("\nForked from {} ({branch}).\n", fork.parent_session_id));
    }
    for message in &session.messages {
        let heading = match message.role {
            MessageRole::User => "\n## You\n\n",
            MessageRole::Assistant => "\n## Assistant\n\n",
            MessageRole::System => "\n## Summary of what came before\n\n",
            MessageRole::Tool => "",
        };
        out.push_str(heading);
        for block in &message.blocks {
            write_block(&mut out, block);
        }
        if message.partial.is_some() {
            out.push_str("_(this answer is partial)_\n");
        }
    }
    out
}

fn write_block(out: &mut String, block: &ContentBlock) {
    match block {
        ContentBlock::Text { text } => {
            out.push_str(text);
            out.push('\n');
        }
        ContentBlock::Thinking { thinking, .. } => {
            out.push_str(&format!(
                "<details><summary>Thinking</summary>\n\n{thinking}\n\n</details>\n\n"
            ));
        }
        ContentBlock::RedactedThinking { .. } => {
            out.push_str("_(thinking hidden by the provider)_\n\n");
        }
        ContentBlock::ToolUse { name, input, .. } => {
            out.push_str(&format!("\n**{name}**\n\n{}\n", fenced(input, "json")));
        }
        ContentBlock::ToolResult { tool_name, output, is_error, .. } => {
            let what = if *is_error { "failed" } else { "result" };
            out.push_str(&format!("\n_{tool_name} {what}:_\n\n{}\n", fenced(output, "")));
        }
    }
}

/// A fence that is longer than any run of backticks inside.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_survives_backticks_inside() {
        assert_eq!(fenced("a ``` b", "x"), "````x\na ``` b\n````\n");
        assert_eq!(fenced("plain", ""), "```\nplain\n```\n");
    }
}
