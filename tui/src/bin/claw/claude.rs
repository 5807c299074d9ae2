//! The real Claude Code CLI among the backends: its row, and our own tools' rules for its tools.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use claw_runtime::api::ApiError;
use claw_runtime::driver::{Backend, BackendRow};
use claw_runtime::redact::Redactor;
use claw_runtime::session::Session;
use claw_runtime::settings::{TransportChoice, WorkerSettings};
use claw_runtime::tools::{Requirement, ToolCall, ToolExecutor as _, ToolRegistry, own_name};
use claw_workers::{
    Host, Judge, Memory, Timings, Transport, WindowSize, WorkerClient, WorkerClientParts,
    WorkerConfig, environment, guard, private_dir, version,
};

use crate::{hook, wiring};

/// This backend's name.
pub const NAME: &str = "claude";

/// Names that the CLI itself knows for its models.
const MODELS: [&str; 3] = ["opus", "sonnet", "haiku"];

/// What the row needs of the program around it.
pub struct Surroundings {
    pub root: PathBuf,
    /// The folder of this workspace's session files.
    pub sessions: PathBuf,
    pub redactor: Redactor,
    pub host: Arc<Host>,
}

/// The row. It is configured when the program is there.
pub fn row(settings: &WorkerSettings, around: Surroundings) -> BackendRow {
    let config = config(settings, &around.root);
    let configured = version::find_program(&config).is_ok();
    BackendRow {
        name: NAME,
        configured,
        variables: Vec::new(),
        address: None,
        models: MODELS.map(str::to_owned).to_vec(),
        open: Box::new(move |model| {
            let mut config = config.clone();
            config.model = model.map(str::to_owned);
            let failed = |message: String| ApiError::Worker { message };
            config.private_root = private_dir::private_root(&config.environment)
                .map_err(|error| failed(error.to_string()))?;
            let judge = ToolRegistry::new(&around.root, around.redactor.clone())
                .map(OwnRules)
                .map_err(|error| failed(error.to_string()))?;
            let client = WorkerClient::new(WorkerClientParts {
                config,
                memory: Memory::new(around.sessions.clone()),
                judge: Arc::new(judge),
                host: Arc::clone(&around.host),
            });
            Ok(Backend {
                name: NAME.to_owned(),
                client: Box::new(client),
                model: model.unwrap_or_default().to_owned(),
                context_window: None,
                note: None,
            })
        }),
    }
}

/// True when a conversation was last with a worker; `sessions` is the folder of its file.
pub fn has_last_word(sessions: &Path, session: &Session) -> bool {
    Memory::new(sessions.to_owned()).has_last_word(&session.id, &session.messages)
}

/// Everything that is fixed for the workers of this workspace.
pub fn config(settings: &WorkerSettings, root: &Path) -> WorkerConfig {
    WorkerConfig {
        program: OsString::from(&settings.program),
        prefix: settings.prefix.iter().map(OsString::from).collect(),
        arguments: settings.arguments.iter().map(OsString::from).collect(),
        cwd: root.to_owned(),
        trusted: false,
        config_dir: wiring::environment("CLAUDE_CONFIG_DIR").map(PathBuf::from),
        home: wiring::environment("HOME").map(PathBuf::from).unwrap_or_default(),
        environment: std::env::vars_os().collect(),
        pass: environment::DEFAULT_PASS
            .iter()
            .map(|name| (*name).to_owned())
            .chain(settings.environment.iter().cloned())
            .collect(),
        model: None,
        system_prompt: settings.system_prompt.clone(),
        allowed_tools: Vec::new(),
        disallowed_tools: Vec::new(),
        permission_mode: settings.permission_mode.clone(),
        transport: match settings.transport {
            TransportChoice::Pty => Transport::Pty,
            TransportChoice::Stream => Transport::Stream,
        },
        tap: settings.tap,
        auto_compaction: settings.auto_compaction,
        idle: (settings.idle_minutes > 0)
            .then(|| Duration::from_mins(u64::from(settings.idle_minutes))),
        size: WindowSize::default(),
        hook: vec![own_file(), hook::SUBCOMMAND.into()],
        guard: vec![own_file(), guard::SUBCOMMAND.into()],
        // Looked for, and made, when the first worker is wanted.
        private_root: PathBuf::new(),
        timings: Timings::default(),
    }
}

/// What our own tools of the same name need, the CLI's need too.
struct OwnRules(ToolRegistry);

impl Judge for OwnRules {
    fn requirement(&self, call: &ToolCall) -> Requirement {
        self.0.requirement_elsewhere(&ours(call))
    }

    fn preview(&self, call: &ToolCall) -> Option<String> {
        self.0.preview(&ours(call))
    }
}

/// The call under our own tool's name, where we have that tool.
fn ours(call: &ToolCall) -> ToolCall {
    let name = own_name(&call.name).map_or_else(|| call.name.clone(), str::to_owned);
    ToolCall { name, ..call.clone() }
}

/// A name for this program's file that another process can run, also when it was replaced meanwhile.
fn own_file() -> OsString {
    match std::env::current_exe() {
        Ok(file) if file.exists() => file.into_os_string(),
        _ => format!("/proc/{}/exe", std::process::id()).into(),
    }
}
