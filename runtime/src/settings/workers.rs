//! The settings under `workers`: how Claude Code is run as a backend. Only the person may set them,
//! since they name programs and what reaches them.

use serde::Deserialize;
use serde_json::Value;

/// How Claude Code is run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WorkerSettings {
    /// The CLI: a name on PATH or a path.
    pub program: String,
    /// What comes before the program, e.g. `["ssh", "host"]`.
    pub prefix: Vec<String>,
    /// More arguments for it.
    pub arguments: Vec<String>,
    pub transport: TransportChoice,
    /// Live text through a local pass-through of the API.
    pub tap: bool,
    /// Whether the CLI compacts by itself.
    pub auto_compaction: bool,
    /// Minutes without use after which the CLI is ended; the next prompt goes on in its session.
    /// 0: never.
    pub idle_minutes: u32,
    /// The CLI's own permission mode; `default` asks us.
    pub permission_mode: String,
    /// `CLAUDE*` variables that may reach the CLI besides the built-in ones.
    pub environment: Vec<String>,
    /// Replaces the CLI's own system prompt.
    pub system_prompt: Option<String>,
}

/// How we talk to the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportChoice {
    /// The interactive CLI on a pseudo-terminal.
    #[default]
    Pty,
    /// `-p` with JSON lines.
    Stream,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            program: "claude".to_owned(),
            prefix: Vec::new(),
            arguments: Vec::new(),
            transport: TransportChoice::default(),
            tap: true,
            auto_compaction: true,
            idle_minutes: 60,
            permission_mode: "default".to_owned(),
            environment: Vec::new(),
            system_prompt: None,
        }
    }
}

impl WorkerSettings {
    /// Reads the object; the message says what is wrong with it.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        let settings: Self = Self::deserialize(value).map_err(|error| error.to_string())?;
        if settings.program.trim().is_empty() {
            return Err("\"program\" is the name or path of a program".to_owned());
        }
        Ok(settings)
    }

    /// Rows for `/config`: key and value of what differs from the default.
    pub(super) fn rows(&self) -> Vec<(String, String)> {
        let default = Self::default();
        let mut rows = Vec::new();
        let mut row = |key: &str, value: String, default: String| {
            if value != default {
                rows.push((format!("workers.{key}"), value));
            }
        };
        row("program", self.program.clone(), default.program);
        row("prefix", self.prefix.join(" "), default.prefix.join(" "));
        // Arguments may hold anything, so they are counted and not shown.
        row("arguments", format!("({} arguments)", self.arguments.len()), "(0 arguments)".into());
        row("transport", format!("{:?}", self.transport).to_lowercase(), "pty".into());
        row("tap", self.tap.to_string(), default.tap.to_string());
        row(
            "autoCompaction",
            self.auto_compaction.to_string(),
            default.auto_compaction.to_string(),
        );
        row("idleMinutes", self.idle_minutes.to_string(), default.idle_minutes.to_string());
        row("permissionMode", self.permission_mode.clone(), default.permission_mode);
        row("environment", self.environment.join(", "), String::new());
        row(
            "systemPrompt",
            self.system_prompt.as_ref().map_or(String::new(), |_| "(set)".to_owned()),
            String::new(),
        );
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_set_keeps_its_default() {
        assert_eq!(WorkerSettings::parse(&json!({})), Ok(WorkerSettings::default()));
        let set = WorkerSettings::parse(&json!({"tap": false, "transport": "stream"})).unwrap();
        assert!(!set.tap && set.transport == TransportChoice::Stream && set.program == "claude");
        assert_eq!(
            set.rows(),
            [
                ("workers.transport".to_owned(), "stream".to_owned()),
                ("workers.tap".to_owned(), "false".to_owned()),
            ]
        );
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_reason() {
        for (value, word) in [
            (json!("x"), "invalid type"),
            (json!({"tap": "no"}), "invalid type"),
            (json!({"tab": true}), "unknown field `tab`"),
            (json!({"transport": "carrier pigeon"}), "unknown variant"),
            (json!({"program": " "}), "\"program\""),
        ] {
            let error = WorkerSettings::parse(&value).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
