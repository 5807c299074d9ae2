//! A home, a workspace and private folders for workers of one CLI, as after a person's first start.

#![expect(clippy::expect_used, reason = "support code fails the test that uses it by panicking")]
#![expect(clippy::missing_panics_doc, reason = "panicking is how a test fails")]

use std::ffi::OsString;
use std::path::Path;

use claw_workers::{Timings, Transport, WindowSize, WorkerConfig, guard};
use tempfile::TempDir;

use crate::claude::{self, KEY};
use crate::harness::claw_binary;
use crate::mock_api::MockApi;

/// The folders. Dropping them removes everything.
pub struct WorkerRoom {
    home: TempDir,
    private: TempDir,
}

impl Default for WorkerRoom {
    fn default() -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let known = claude::settled(home.path()).to_string();
        std::fs::write(home.path().join(".claude.json"), known).expect("a file");
        Self { home, private: claude::private_root() }
    }
}

impl WorkerRoom {
    /// The home, which is the workspace too.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Where private folders are made.
    pub fn private_root(&self) -> &Path {
        self.private.path()
    }

    /// Folders of workers that live.
    pub fn private_folders(&self) -> usize {
        let folders = std::fs::read_dir(self.private.path()).into_iter().flatten().flatten();
        folders.filter(|folder| folder.path().join("settings.json").exists()).count()
    }

    /// Processes of its workers that live.
    pub fn processes(&self) -> Vec<i32> {
        let home = self.home.path().canonicalize().expect("the folder is there");
        claude::worker_processes(&format!("HOME={}", home.display()))
    }

    /// Workers of this program, with nothing of the machine around it but PATH.
    pub fn config(&self, program: &OsString, api: &MockApi, transport: Transport) -> WorkerConfig {
        let home = self.home.path().canonicalize().expect("the folder is there");
        let variables = [
            ("HOME", home.clone().into()),
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("ANTHROPIC_API_KEY", KEY.into()),
            ("ANTHROPIC_BASE_URL", api.base_url().into()),
            ("DISABLE_AUTOUPDATER", "1".into()),
            ("DISABLE_TELEMETRY", "1".into()),
            ("DISABLE_ERROR_REPORTING", "1".into()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
            ("CLAUDE_CODE_MAX_RETRIES", "1".into()),
        ];
        WorkerConfig {
            program: program.clone(),
            prefix: Vec::new(),
            arguments: Vec::new(),
            cwd: home.clone(),
            trusted: false,
            config_dir: None,
            home,
            environment: variables.map(|(name, value)| (name.into(), value)).to_vec(),
            pass: ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_MAX_RETRIES"]
                .map(str::to_owned)
                .to_vec(),
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
            timings: Timings::default(),
        }
    }
}
