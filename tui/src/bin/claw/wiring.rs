//! The composition root: settings, backends, session and tools become one driver.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use claw_runtime::api::anthropic::{self, AnthropicClient, AnthropicConfig};
use claw_runtime::api::demo::{self, DemoClient};
use claw_runtime::api::models::{self, Provider};
use claw_runtime::api::openai::{OpenAiClient, OpenAiConfig, Preset};
use claw_runtime::api::{ApiClient, ApiError};
use claw_runtime::compact;
use claw_runtime::conversation::ConversationRuntime;
use claw_runtime::driver::{Backend, BackendFacts, BackendRow, Backends, Driver, DriverParts};
use claw_runtime::permissions::{PermissionMode, PermissionPrompter};
use claw_runtime::prompt::system_prompt;
use claw_runtime::redact::Redactor;
use claw_runtime::session::SessionStore;
use claw_runtime::settings::{DEFAULT_MODE, Settings};
use claw_runtime::tools::{ToolExecutor, ToolRegistry};
use claw_runtime::usage::UsageTracker;
use claw_runtime::{StreamSink, TuiEvent};

use claw_workers::Host;

use crate::args::Common;
use crate::claude;

/// Where the program works and what is set for it there.
pub struct Workspace {
    pub root: PathBuf,
    /// The folder in which the program was started; none when it is gone.
    pub started_in: Option<PathBuf>,
    pub settings: Settings,
}

impl Workspace {
    /// The folder named on the command line or the current one, which becomes the current one.
    pub fn enter(common: &Common) -> Result<Self> {
        let started_in = std::env::current_dir().ok();
        if let Some(folder) = &common.cwd {
            std::env::set_current_dir(folder)
                .with_context(|| format!("cannot work in {}", folder.display()))?;
        }
        let root = std::env::current_dir().context("the current folder is gone")?;
        let settings = Settings::load(&root, &environment);
        Ok(Self { root, started_in, settings })
    }
}

/// One variable of the environment; empty ones count as unset.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What becomes of a backend or session that was asked for and cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failing {
    /// The person is told and goes on with the next best.
    GoesOn,
    /// The run ends with the error.
    Ends,
}

/// The driver, from everything that was asked for. Runs on the runtime thread.
pub fn driver(
    workspace: Workspace,
    common: &Common,
    sink: Arc<dyn StreamSink>,
    prompter: Arc<dyn PermissionPrompter>,
    failing: Failing,
    host: Arc<Host>,
) -> Result<Driver> {
    let Workspace { root, settings, .. } = workspace;
    let redactor = Redactor::from_env(std::iter::empty::<String>());
    let mut store = SessionStore::open(&root)?.with_redactor(redactor.clone());
    if let Some(home) = environment("HOME") {
        store = store.with_home(Path::new(&home));
    }
    let around = claude::Surroundings {
        root: root.clone(),
        sessions: store.folder().to_owned(),
        redactor: redactor.clone(),
        host,
    };
    let mut backends = Backends::new(rows(&settings, around));
    let mut warnings = settings.warnings();
    // Whoever watches sees the end of a long session while the rest of it is read.
    let show = |view| {
        if failing == Failing::GoesOn {
            sink.emit(TuiEvent::SessionOpened { view });
        }
    };
    let opened = common.resume.as_deref().map(|wanted| store.resume_showing(wanted, show));
    let opened = match opened {
        Some(Err(error)) if failing == Failing::Ends => return Err(error.into()),
        Some(Err(error)) => {
            warnings.push(format!("{error}. A new session was begun instead."));
            None
        }
        Some(Ok(session)) => Some(session),
        None => None,
    };
    // A conversation with a worker goes on with one.
    let last = opened
        .as_ref()
        .filter(|opened| claude::has_last_word(store.folder(), opened.session()))
        .map(|_| claude::NAME);
    let backend = match open_backend(&mut backends, common, &settings, last, failing) {
        Err(error) if failing == Failing::GoesOn => {
            warnings.push(error.to_string());
            backends.open_first(None)?
        }
        opened => opened?,
    };
    let resumed = opened.is_some();
    let session = opened.unwrap_or_else(|| store.create(&backend.model));
    let prompt = system_prompt(&root, &environment);
    let mode = permission_mode(common, &settings)?;
    let usage = UsageTracker::from_session(session.session()).with_prices(settings.prices());
    let mut tools = ToolRegistry::new(&root, redactor.clone())?;
    if !common.allowed_tools.is_empty() {
        tools = tools.only(&common.allowed_tools)?;
    }
    let tools: Box<dyn ToolExecutor> = Box::new(tools);
    let mut conversation = ConversationRuntime::new(session, backend.client, tools, backend.model)
        .with_system_prompt(prompt.blocks)
        .with_permission_mode(mode)
        .with_usage(usage)
        .with_redactor(redactor)
        .with_auto_compaction_input_tokens_threshold(compact::auto_compaction_threshold(
            &environment,
        ));
    conversation.set_context_window(backend.context_window);
    warnings.extend(prompt.warnings);
    Ok(Driver::new(DriverParts {
        conversation,
        store,
        backends,
        backend: BackendFacts { name: backend.name, note: backend.note },
        config: settings.rows(),
        sink,
        prompter,
        resumed,
        warnings,
    }))
}

/// The backend that was asked for, or the `last` one of the conversation, or the first that is
/// configured. The demo answers unasked only where a person sees that it is one.
pub fn open_backend(
    backends: &mut Backends,
    common: &Common,
    settings: &Settings,
    last: Option<&str>,
    failing: Failing,
) -> Result<Backend, ApiError> {
    let model = common.model.clone().or_else(|| settings.model());
    let asked = common.backend.map(|name| name.as_str().to_owned());
    if let (None, Some(last)) = (&asked, last) {
        // The model of the settings is for the backend of the settings.
        return backends.open(last, common.model.as_deref());
    }
    match asked.or_else(|| settings.backend()) {
        Some(name) => backends.open(&name, model.as_deref()),
        None if failing == Failing::Ends && backends.names() == ["demo"] => {
            Err(ApiError::NoBackend)
        }
        None => backends.open_first(model.as_deref()),
    }
}

/// Command line, then environment, then settings, then the default.
fn permission_mode(common: &Common, settings: &Settings) -> Result<PermissionMode> {
    if let Some(mode) = common.mode() {
        return Ok(mode);
    }
    if let Some(value) = environment("RUSTY_CLAUDE_PERMISSION_MODE") {
        return value.parse().context("RUSTY_CLAUDE_PERMISSION_MODE");
    }
    Ok(settings.permission_mode().unwrap_or(DEFAULT_MODE))
}

/// The backends in order of preference. One row adds one.
pub fn rows(settings: &Settings, around: claude::Surroundings) -> Vec<BackendRow> {
    let aliases = settings.aliases();
    let mut rows = vec![messages_api(aliases.clone())];
    rows.extend(Preset::ALL.map(|preset| chat(preset, aliases.clone())));
    rows.push(demo());
    rows.push(claude::row(&settings.workers(), around));
    rows
}

type Aliases = BTreeMap<String, String>;

fn messages_api(aliases: Aliases) -> BackendRow {
    let configured = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"]
        .iter()
        .any(|name| environment(name).is_some());
    BackendRow {
        name: "anthropic",
        configured,
        variables: anthropic::VARIABLES.to_vec(),
        address: AnthropicConfig::from_env(&environment).ok().map(|config| config.base_url),
        models: known_models(Provider::Anthropic),
        open: Box::new(move |model| {
            let client = AnthropicClient::new(AnthropicConfig::from_env(&environment)?)?;
            let model = resolve(model.unwrap_or(models::DEFAULT_MODEL), &aliases);
            Ok(backend("anthropic", Box::new(client), model))
        }),
    }
}

/// A provider that speaks chat completions.
fn chat(preset: Preset, aliases: Aliases) -> BackendRow {
    BackendRow {
        name: preset.name(),
        configured: preset.is_configured(&environment),
        variables: match preset {
            // Its server wants no key.
            Preset::Ollama => vec![preset.address_variable(), preset.key_variable()],
            _ => vec![preset.key_variable(), preset.address_variable()],
        },
        address: OpenAiConfig::from_env(preset, &environment).ok().map(|config| config.base_url),
        models: known_models(preset.provider()),
        open: Box::new(move |model| {
            let config = OpenAiConfig::from_env(preset, &environment)?;
            let model = model
                .or(preset.default_model())
                .ok_or_else(|| ApiError::NoModel { backend: preset.name() })?;
            let client = OpenAiClient::new(config)?;
            Ok(backend(preset.name(), Box::new(client), resolve(model, &aliases)))
        }),
    }
}

fn demo() -> BackendRow {
    BackendRow {
        name: "demo",
        configured: true,
        variables: Vec::new(),
        address: None,
        models: vec![demo::MODEL.to_owned()],
        open: Box::new(|_| {
            let pace = environment("CLAW_DEMO_PACE_MS")
                .and_then(|ms| ms.parse().ok())
                .map_or(demo::DEFAULT_PACE, Duration::from_millis);
            Ok(Backend {
                note: Some(demo::NOTE.to_owned()),
                ..backend("demo", Box::new(DemoClient::new(pace)?), demo::MODEL.to_owned())
            })
        }),
    }
}

fn backend(name: &str, client: Box<dyn ApiClient>, model: String) -> Backend {
    let context_window = models::context_window(&model);
    Backend { name: name.to_owned(), client, model, context_window, note: None }
}

/// The person's own aliases first, then the built-in ones.
fn resolve(model: &str, aliases: &Aliases) -> String {
    let model = aliases.get(model).map_or(model, String::as_str);
    models::resolve_alias(model).to_owned()
}

fn known_models(provider: Provider) -> Vec<String> {
    models::MODELS
        .iter()
        .filter(|model| model.provider == provider)
        .map(|model| model.id.to_owned())
        .collect()
}
