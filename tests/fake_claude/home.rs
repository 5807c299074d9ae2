//! The files of the CLI: `.claude.json`, settings, and where transcripts lie.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::version::Version;

/// Where everything lies.
#[derive(Debug, Clone)]
pub struct Home {
    pub cwd: PathBuf,
    /// `CLAUDE_CONFIG_DIR`, or `~/.claude`.
    pub config_dir: PathBuf,
    /// `.claude.json`: beside the config dir unless that was named.
    pub file: PathBuf,
}

impl Home {
    pub fn from_environment() -> Self {
        let cwd = std::env::current_dir().expect("a working folder");
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/".into()));
        let named = std::env::var_os("CLAUDE_CONFIG_DIR").filter(|dir| !dir.is_empty());
        match named.map(PathBuf::from) {
            Some(dir) => Self { cwd, file: dir.join(".claude.json"), config_dir: dir },
            None => Self { cwd, file: home.join(".claude.json"), config_dir: home.join(".claude") },
        }
    }

    /// The folder of this workspace's transcripts.
    pub fn project(&self) -> PathBuf {
        let cwd = self.cwd.to_string_lossy();
        let slug = cwd.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        self.config_dir.join("projects").join(slug.collect::<String>())
    }

    pub fn transcript(&self, session: &str) -> PathBuf {
        self.project().join(format!("{session}.jsonl"))
    }

    pub fn subagent(&self, session: &str, agent: &str, end: &str) -> PathBuf {
        self.project().join(session).join("subagents").join(format!("agent-{agent}.{end}"))
    }

    /// The newest transcript of this workspace.
    pub fn latest(&self) -> Option<String> {
        let entries = fs::read_dir(self.project()).ok()?.flatten();
        let transcripts =
            entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "jsonl"));
        let newest = transcripts
            .max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok())?;
        Some(newest.path().file_stem()?.to_string_lossy().into_owned())
    }

    pub fn config(&self) -> Value {
        read_json(&self.file).unwrap_or_else(|| json!({}))
    }

    /// Changes `.claude.json`.
    pub fn change(&self, change: impl FnOnce(&mut Value)) {
        let mut config = self.config();
        change(&mut config);
        write_json(&self.file, &config);
    }

    /// A folder is trusted with any that holds it; 332 looks no further than its repository.
    pub fn is_trusted(&self, version: Version) -> bool {
        let config = self.config();
        for folder in self.cwd.ancestors() {
            let name = folder.to_string_lossy();
            if config["projects"][&*name]["hasTrustDialogAccepted"] == true {
                return true;
            }
            if version.is_332() && folder.join(".git").exists() {
                return false;
            }
        }
        false
    }

    pub fn trust(&self) {
        let cwd = self.cwd.to_string_lossy().into_owned();
        self.change(|config| config["projects"][cwd]["hasTrustDialogAccepted"] = json!(true));
    }

    /// All settings that apply, the weakest first: the user's, the project's, the named ones.
    pub fn settings(&self, named: &[String]) -> Result<Vec<Value>, String> {
        let mut all = Vec::new();
        all.extend(read_json(&self.config_dir.join("settings.json")));
        all.extend(read_json(&self.cwd.join(".claude/settings.json")));
        all.extend(read_json(&self.cwd.join(".claude/settings.local.json")));
        for item in named {
            let text = if item.trim_start().starts_with('{') {
                item.clone()
            } else {
                fs::read_to_string(item)
                    .map_err(|_| format!("Error: Settings file not found: {item}"))?
            };
            let value = serde_json::from_str(&text)
                .map_err(|_| "Error: Invalid JSON provided to --settings".to_owned())?;
            all.push(value);
        }
        Ok(all)
    }

    /// Writes a key into the user's settings.
    pub fn set(&self, key: &str, value: Value) {
        let path = self.config_dir.join("settings.json");
        let mut settings = read_json(&path).unwrap_or_else(|| json!({}));
        settings[key] = value;
        write_json(&path, &settings);
    }
}

fn read_json(path: &Path) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

fn write_json(path: &Path, value: &Value) {
    if let Some(folder) = path.parent() {
        let _ = fs::create_dir_all(folder);
    }
    let _ = fs::write(path, format!("{value:#}"));
}
