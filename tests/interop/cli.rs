//! Where the CLI is, and a place for it to run in that nothing of this machine reaches.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use claw_tests::claude::{self, KEY, housekeeping, is_of_the_story};
use claw_tests::harness::claw_binary;
use claw_tests::mock_api::{MockApi, RecordedRequest, Reply};
use claw_workers::{Timings, Transport, WindowSize, WorkerConfig, guard};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::terminal::Terminal;

/// The versions that the project was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    V197,
    V332,
}

impl Version {
    pub fn number(self) -> &'static str {
        match self {
            Self::V197 => "2.1.197",
            Self::V332 => "2.1.332",
        }
    }

    fn variable(self) -> &'static str {
        match self {
            Self::V197 => "CLAW_INTEROP_CLI_197",
            Self::V332 => "CLAW_INTEROP_CLI_332",
        }
    }
}

/// Declares each of these functions as a test for either version.
macro_rules! on_both_versions {
    ($($test:ident),+ $(,)?) => {
        mod v2_1_197 {
            $(#[test] fn $test() { $crate::cli::with($crate::cli::Version::V197, super::$test); })+
        }
        mod v2_1_332 {
            $(#[test] fn $test() { $crate::cli::with($crate::cli::Version::V332, super::$test); })+
        }
    };
}
pub(crate) use on_both_versions;

/// Runs a test in a fresh room, or says that it is skipped because the CLI is not there.
pub fn with(version: Version, test: impl AsyncFnOnce(&Room)) {
    let variable = version.variable();
    let Some(program) = std::env::var_os(variable).filter(|value| !value.is_empty()) else {
        let message = format!(
            "skipped: set {variable} to Claude Code {}, or run .ci/interop (see README)",
            version.number()
        );
        assert!(std::env::var_os("CLAW_INTEROP_REQUIRED").is_none(), "{message}");
        // Straight to the stream: what is printed by a test that passes is not shown.
        let _ = writeln!(std::io::stderr(), "{message}");
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a tokio runtime");
    runtime.block_on(async {
        let room = Room::new(version, program);
        let whole = tokio::time::timeout(std::time::Duration::from_mins(2), test(&room));
        whole.await.expect("a story of the CLI takes seconds");
    });
}

/// A home, a config folder and a workspace for one CLI, and the model that it talks to.
pub struct Room {
    pub version: Version,
    pub program: OsString,
    pub api: Arc<MockApi>,
    folder: TempDir,
    private: TempDir,
}

impl Room {
    fn new(version: Version, program: OsString) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let private = claude::private_root();
        let room = Self { version, program, api: Arc::new(MockApi::start()), folder, private };
        for part in ["home", "config", "work"] {
            std::fs::create_dir(room.part(part)).expect("a new folder");
        }
        // As after the person's first start; whether the workspace is trusted is each test's business.
        let config = json!({
            "hasCompletedOnboarding": true,
            "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
        });
        std::fs::write(room.config_file(), config.to_string()).expect("a config file");
        room.answer_asides();
        room
    }

    /// What the CLI asks besides the conversation is answered without a script.
    fn answer_asides(&self) {
        self.api.answer(housekeeping);
    }

    /// The same, and every question of the conversation by what it says.
    pub fn answer_asides_and(
        &self,
        mut answer: impl FnMut(&RecordedRequest) -> Reply + Send + 'static,
    ) {
        self.api
            .answer(move |request| Some(housekeeping(request).unwrap_or_else(|| answer(request))));
    }

    fn part(&self, name: &str) -> PathBuf {
        // The CLI names folders by their real path.
        self.folder.path().canonicalize().expect("the folder is there").join(name)
    }

    pub fn home(&self) -> PathBuf {
        self.part("home")
    }

    pub fn config_dir(&self) -> PathBuf {
        self.part("config")
    }

    pub fn config_file(&self) -> PathBuf {
        self.config_dir().join(".claude.json")
    }

    pub fn workspace(&self) -> PathBuf {
        self.part("work")
    }

    /// The environment of a person without any setting but a key: no telemetry, no updates, and the
    /// model at `base_url`.
    pub fn environment(&self, base_url: &str) -> Vec<(OsString, OsString)> {
        let home = self.home();
        let config = self.config_dir();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut variables: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), path),
            ("HOME".into(), home.into()),
            ("CLAUDE_CONFIG_DIR".into(), config.into()),
            ("ANTHROPIC_API_KEY".into(), KEY.into()),
            ("ANTHROPIC_BASE_URL".into(), base_url.into()),
            ("LANG".into(), "C.UTF-8".into()),
            ("TERM".into(), "xterm-256color".into()),
        ];
        for quiet in [
            "DISABLE_TELEMETRY",
            "DISABLE_AUTOUPDATER",
            "DISABLE_ERROR_REPORTING",
            "DISABLE_BUG_COMMAND",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        ] {
            variables.push((quiet.into(), "1".into()));
        }
        variables
    }

    /// A worker of this room.
    pub fn config(&self, transport: Transport) -> WorkerConfig {
        WorkerConfig {
            program: self.program.clone(),
            prefix: Vec::new(),
            arguments: Vec::new(),
            cwd: self.workspace(),
            trusted: false,
            config_dir: Some(self.config_dir()),
            home: self.home(),
            environment: self.environment(self.api.base_url()),
            pass: vec!["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC".to_owned()],
            model: None,
            system_prompt: None,
            allowed_tools: Vec::new(),
            disallowed_tools: Vec::new(),
            permission_mode: "default".to_owned(),
            transport,
            tap: true,
            auto_compaction: true,
            idle: None,
            size: WindowSize::default(),
            hook: vec![claw_binary().into(), "hook".into()],
            guard: vec![claw_binary().into(), guard::SUBCOMMAND.into()],
            private_root: self.private.path().to_owned(),
            // On a busy machine the CLI writes the first of its transcript later than its first end.
            timings: Timings {
                transcript_missing: Timings::default().transcript_lag,
                ..Timings::default()
            },
        }
    }

    /// As after the person's yes to the CLI's own question.
    pub fn trust_workspace(&self) {
        let text = std::fs::read_to_string(self.config_file()).expect("a config file");
        let mut config: Value = serde_json::from_str(&text).expect("JSON");
        let workspace = self.workspace();
        let name = workspace.to_str().expect("a path of text");
        config["projects"][name] = json!({"hasTrustDialogAccepted": true});
        std::fs::write(self.config_file(), config.to_string()).expect("a config file");
    }

    /// The interactive CLI on a terminal, in the workspace.
    pub fn interactive(
        &self,
        arguments: &[&str],
        environment: &[(OsString, OsString)],
    ) -> Terminal {
        let mut argv = vec![self.program.clone()];
        argv.extend(arguments.iter().map(OsString::from));
        Terminal::start(&argv, environment, &self.workspace())
    }

    /// Waits for the model's side without keeping the rest of the test from going on.
    pub async fn on_model(&self, wait: impl FnOnce(&MockApi) + Send + 'static) {
        let api = Arc::clone(&self.api);
        tokio::task::spawn_blocking(move || wait(&api)).await.expect("it came");
    }

    /// Questions of the conversation that reached the model.
    pub fn questions(&self) -> Vec<RecordedRequest> {
        let mut questions = self.api.requests();
        questions.retain(is_of_the_story);
        questions
    }
}

/// The CLI as a command for one question without a terminal.
pub fn print_command(
    room: &Room,
    session: &str,
    environment: &[(OsString, OsString)],
    prompt: &str,
) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(&room.program);
    command
        .args(["-p", prompt, "--output-format", "json", "--session-id", session])
        .args(["--permission-mode", "default"])
        .env_clear()
        .envs(environment.iter().cloned())
        .current_dir(room.workspace())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true);
    command
}
