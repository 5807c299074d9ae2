//! Where the CLI keeps the transcript of a session. The hooks say it as `transcript_path`, which is
//! to be preferred; this is the rule for when no hook has spoken yet.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::config::WorkerConfig;

/// The CLI's own folder of a worker: the configured one, or `.claude` in the home folder.
pub fn config_dir(config: &WorkerConfig) -> PathBuf {
    config.config_dir.clone().unwrap_or_else(|| config.home.join(".claude"))
}

/// `<config dir>/projects/<slug of the resolved cwd>/<session id>.jsonl`. Looks at the file system,
/// because the CLI knows its folder without links; what cannot be resolved is made absolute only.
pub fn transcript_path(config_dir: &Path, cwd: &Path, session_id: &str) -> PathBuf {
    let resolved = cwd
        .canonicalize()
        .or_else(|_| std::path::absolute(cwd))
        .unwrap_or_else(|_| cwd.to_path_buf());
    config_dir.join("projects").join(slug(&resolved)).join(format!("{session_id}.jsonl"))
}

/// Every character outside of `[A-Za-z0-9]` becomes `-`, case is kept. A trailing slash is no part of
/// a folder's name. The CLI counts in UTF-16 units: a character of two units becomes two dashes.
pub fn slug(cwd: &Path) -> String {
    let text = cwd.to_string_lossy();
    let name = match text.trim_end_matches('/') {
        "" => "/",
        name => name,
    };
    let mut slug = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else {
            slug.extend(std::iter::repeat_n('-', c.len_utf16()));
        }
    }
    slug
}

/// The folder of the sub-agents' transcripts: `<session id>/subagents` beside the session's own.
pub fn agents_folder(transcript: &Path) -> PathBuf {
    let session = transcript.file_stem().unwrap_or(OsStr::new("unknown"));
    transcript.with_file_name(session).join("subagents")
}

#[cfg(test)]
mod tests;
