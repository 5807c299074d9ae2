//! What a person and a project set, in layers; each value knows the file that it came from.
//!
//! A project's files come with the project, so they may choose and tighten but not open up: no
//! looser permission mode than the person's own, no provider address, no keys. Nothing here applies
//! `env` or runs anything, and nothing of it is ever part of a prompt.

mod layer;
mod parse;
mod workers;

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr as _;
use std::sync::Arc;

use serde_json::{Map, Value};

pub(crate) use layer::folders_to;
pub use layer::{Layer, Scope, config_home};
pub use workers::{TransportChoice, WorkerSettings};

use layer::Source;

use crate::permissions::{PermissionLevel, PermissionMode, PermissionPolicy, PermissionVerdict};
use crate::tools::{Grant, Requirement};
use crate::usage::{Price, PriceTable};

/// The mode when nobody sets one.
pub const DEFAULT_MODE: PermissionMode = PermissionMode::WorkspaceWrite;

/// Keys of claw-code and Claude Code that this version reads over. It is told where one is set,
/// because some of them protect.
const NOT_USED: [&str; 15] = [
    "keybindings",
    "hooks",
    "mcpServers",
    "oauth",
    "enabledPlugins",
    "plugins",
    "sandbox",
    "env",
    "providerFallbacks",
    "trustedRoots",
    "provider",
    "rulesImport",
    "subagentModel",
    "apiTimeout",
    "$schema",
];
/// The same inside `permissions`.
const NOT_USED_PERMISSIONS: [&str; 4] = ["allow", "deny", "ask", "deniedTools"];
/// What only the person may set, and why.
const USER_ONLY: [(&str, &str); 6] = [
    ("workers", "a project may not say which programs are run"),
    ("provider", "a project may not say where the conversation is sent"),
    ("oauth", "a project may not say where the conversation is sent"),
    ("env", "a project may not set the environment"),
    ("prices", "a project may not say what a model costs"),
    ("keybindings", "a project may not say what keys do"),
];

/// Colours that fit the terminal's background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThemeChoice {
    #[default]
    Auto,
    Dark,
    Light,
}

impl ThemeChoice {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Dark => "dark",
            Self::Light => "light",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Auto, Self::Dark, Self::Light].into_iter().find(|choice| choice.as_str() == name)
    }
}

/// A value and the file that set it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sourced<T> {
    pub value: T,
    pub layer: Arc<Layer>,
}

/// All layers put together.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    model: Option<Sourced<String>>,
    backend: Option<Sourced<String>>,
    mode: Option<Sourced<PermissionMode>>,
    theme: Option<Sourced<ThemeChoice>>,
    aliases: BTreeMap<String, Sourced<String>>,
    prices: BTreeMap<String, Sourced<Price>>,
    workers: Option<Sourced<WorkerSettings>>,
    /// Keys that were read over, in order.
    unused: Vec<Sourced<String>>,
    /// Everything that was accepted: objects merged, arrays joined, later layers win.
    merged: Map<String, Value>,
    warnings: Vec<String>,
    files: Vec<Layer>,
}

impl Settings {
    /// Reads the layers that apply in `workspace`. The only function here that touches files.
    /// `environment` looks up one variable.
    pub fn load(workspace: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Self {
        let (sources, warnings) = layer::read_all(workspace, environment);
        let mut settings = Self { warnings, ..Self::default() };
        for source in &sources {
            settings.add(source);
            settings.files.push(source.layer.clone());
        }
        settings
    }

    pub fn model(&self) -> Option<String> {
        self.model.as_ref().map(|model| model.value.clone())
    }

    pub fn backend(&self) -> Option<String> {
        self.backend.as_ref().map(|backend| backend.value.clone())
    }

    /// The mode that the layers agree on; none means [`DEFAULT_MODE`].
    pub fn permission_mode(&self) -> Option<PermissionMode> {
        self.mode.as_ref().map(|mode| mode.value)
    }

    pub fn theme(&self) -> ThemeChoice {
        self.theme.as_ref().map_or_else(ThemeChoice::default, |theme| theme.value)
    }

    /// Short names of models, with the model that each stands for.
    pub fn aliases(&self) -> BTreeMap<String, String> {
        self.aliases.iter().map(|(name, alias)| (name.clone(), alias.value.clone())).collect()
    }

    /// How Claude Code is run as a backend.
    pub fn workers(&self) -> WorkerSettings {
        self.workers.as_ref().map(|workers| workers.value.clone()).unwrap_or_default()
    }

    /// The built-in prices with the person's own.
    pub fn prices(&self) -> PriceTable {
        let own = self.prices.iter().map(|(model, price)| (model.clone(), price.value.clone()));
        PriceTable::built_in().with_own(own)
    }

    /// A key as it stands, for a part of the program that knows its shape.
    pub fn raw(&self, key: &str) -> Option<&Value> {
        self.merged.get(key)
    }

    /// The files that were read, weakest first.
    pub fn files(&self) -> &[Layer] {
        &self.files
    }

    /// What was not understood or not allowed, each with file and line where there is one.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Every setting as (key, value, where it comes from), for a person. Holds no secret: values of
    /// keys that are not used are not shown.
    pub fn rows(&self) -> Vec<(String, String, String)> {
        let mut rows = Vec::new();
        let mut row = |key: &str, value: Option<(String, &Layer)>, default: &str| {
            let (value, from) = value.map_or_else(
                || (default.to_owned(), "default".to_owned()),
                |(value, layer)| (value, layer.to_string()),
            );
            rows.push((key.to_owned(), value, from));
        };
        let model = self.model.as_ref().map(|s| (s.value.clone(), &*s.layer));
        row("model", model, "the backend's own");
        let backend = self.backend.as_ref().map(|s| (s.value.clone(), &*s.layer));
        row("backend", backend, "the first that is configured");
        let mode = self.mode.as_ref().map(|s| (s.value.to_string(), &*s.layer));
        row("permissions.defaultMode", mode, DEFAULT_MODE.as_str());
        let theme = self.theme.as_ref().map(|s| (s.value.as_str().to_owned(), &*s.layer));
        row("theme", theme, ThemeChoice::default().as_str());
        for (name, alias) in &self.aliases {
            row(&format!("aliases.{name}"), Some((alias.value.clone(), &alias.layer)), "");
        }
        for (model, price) in &self.prices {
            let words = format!("${} in, ${} out", price.value.input, price.value.output);
            row(&format!("prices.{model}"), Some((words, &price.layer)), "");
        }
        if let Some(workers) = &self.workers {
            for (key, value) in workers.value.rows() {
                row(&key, Some((value, &workers.layer)), "");
            }
        }
        for key in &self.unused {
            row(&key.value, Some(("(not used by this version)".to_owned(), &key.layer)), "");
        }
        rows
    }

    /// Lays one file over what is there.
    fn add(&mut self, source: &Source) {
        let parsed = parse::parse(&source.text);
        let file = File { source, layer: Arc::new(source.layer.clone()) };
        for (line, problem) in parsed.problems {
            self.warnings.push(format!("{}:{line}: {problem}", source.layer.path.display()));
        }
        let mut unused = Vec::new();
        for (key, value) in parsed.entries {
            if let Some(reason) = file.refusal(&key) {
                self.warn(&file, &key, &format!("\"{key}\" is ignored: {reason}"));
                continue;
            }
            let accepted = self.add_entry(&file, &key, &value, &mut unused);
            if accepted {
                merge(&mut self.merged, key, value);
            }
        }
        let shown: Vec<&str> =
            unused.iter().map(String::as_str).filter(|key| *key != "$schema").collect();
        if !shown.is_empty() {
            self.warnings.push(format!(
                "{}: not used by this version: {}",
                source.layer.path.display(),
                shown.join(", ")
            ));
        }
        self.unused.extend(
            unused.into_iter().map(|value| Sourced { value, layer: Arc::clone(&file.layer) }),
        );
    }

    /// One top-level key. True when its value may be merged.
    fn add_entry(
        &mut self,
        file: &File<'_>,
        key: &str,
        value: &Value,
        unused: &mut Vec<String>,
    ) -> bool {
        match key {
            "model" => self.model = self.text(file, key, value).or(self.model.take()),
            "backend" => self.backend = self.text(file, key, value).or(self.backend.take()),
            "theme" => {
                let choice = value.as_str().and_then(ThemeChoice::from_name);
                match choice {
                    Some(choice) => self.theme = Some(file.sourced(choice)),
                    None => self.warn(file, key, "\"theme\" is one of auto, dark, light"),
                }
            }
            "permissionMode" => return self.add_mode(file, key, value),
            "permissions" => return self.add_permissions(file, value, unused),
            "aliases" => self.add_aliases(file, value),
            "prices" => self.add_prices(file, value),
            "workers" => match WorkerSettings::parse(value) {
                Ok(workers) => self.workers = Some(file.sourced(workers)),
                Err(error) => self.warn(file, key, &format!("\"workers\": {error}")),
            },
            _ if NOT_USED.contains(&key) => unused.push(key.to_owned()),
            _ => {
                self.warn(file, key, &format!("\"{key}\" is not a setting"));
                // Listed with the settings, but not told a second time.
                self.unused.push(file.sourced(key.to_owned()));
            }
        }
        true
    }

    fn add_permissions(
        &mut self,
        file: &File<'_>,
        value: &Value,
        unused: &mut Vec<String>,
    ) -> bool {
        let Some(fields) = value.as_object() else {
            self.warn(file, "permissions", "\"permissions\" is an object");
            return false;
        };
        for key in fields.keys() {
            if NOT_USED_PERMISSIONS.contains(&key.as_str()) {
                unused.push(format!("permissions.{key}"));
            } else if key != "defaultMode" {
                self.warn(file, key, &format!("\"permissions.{key}\" is not a setting"));
            }
        }
        fields.get("defaultMode").is_none_or(|mode| self.add_mode(file, "defaultMode", mode))
    }

    /// A person's file sets the mode; a project's file may only make it stricter.
    fn add_mode(&mut self, file: &File<'_>, key: &str, value: &Value) -> bool {
        let mode = match value.as_str().map(PermissionMode::from_str) {
            Some(Ok(mode)) => mode,
            Some(Err(error)) => {
                self.warn(file, key, &format!("\"{key}\": {error}"));
                return false;
            }
            None => {
                self.warn(file, key, &format!("\"{key}\" is the name of a permission mode"));
                return false;
            }
        };
        let before = self.permission_mode().unwrap_or(DEFAULT_MODE);
        if file.layer.scope == Scope::Project && !is_as_strict(mode, before) {
            let problem = format!(
                "\"{key}\": a project may not loosen the mode from {before} to {mode}; set it in your own settings or with --permission-mode"
            );
            self.warn(file, key, &problem);
            return false;
        }
        self.mode = Some(file.sourced(mode));
        true
    }

    fn add_aliases(&mut self, file: &File<'_>, value: &Value) {
        let Some(fields) = value.as_object() else {
            return self.warn(file, "aliases", "\"aliases\" is an object of names and models");
        };
        for (name, model) in fields {
            match model.as_str() {
                Some(model) => {
                    self.aliases.insert(name.clone(), file.sourced(model.to_owned()));
                }
                None => self.warn(file, name, &format!("alias \"{name}\" is the name of a model")),
            }
        }
    }

    fn add_prices(&mut self, file: &File<'_>, value: &Value) {
        let Some(fields) = value.as_object() else {
            return self.warn(file, "prices", "\"prices\" is an object of models and prices");
        };
        for (model, price) in fields {
            match serde_json::from_value::<Price>(price.clone()) {
                Ok(price) => {
                    self.prices.insert(model.clone(), file.sourced(price));
                }
                Err(error) => {
                    let problem = format!(
                        "the price of \"{model}\" needs input and output in US dollars per million tokens: {error}"
                    );
                    self.warn(file, model, &problem);
                }
            }
        }
    }

    fn text(&mut self, file: &File<'_>, key: &str, value: &Value) -> Option<Sourced<String>> {
        let text = value.as_str().map(str::trim).filter(|text| !text.is_empty());
        if text.is_none() {
            self.warn(file, key, &format!("\"{key}\" is a text"));
        }
        text.map(|text| file.sourced(text.to_owned()))
    }

    fn warn(&mut self, file: &File<'_>, key: &str, problem: &str) {
        let line = parse::line_of(&file.source.text, key);
        self.warnings.push(format!("{}:{line}: {problem}", file.layer.path.display()));
    }
}

/// The file that is being laid over.
struct File<'a> {
    source: &'a Source,
    layer: Arc<Layer>,
}

impl File<'_> {
    fn sourced<T>(&self, value: T) -> Sourced<T> {
        Sourced { value, layer: Arc::clone(&self.layer) }
    }

    /// Why this file may not set that key.
    fn refusal(&self, key: &str) -> Option<&'static str> {
        if self.layer.scope == Scope::User {
            return None;
        }
        USER_ONLY.iter().find(|(name, _)| *name == key).map(|(_, reason)| *reason)
    }
}

/// Whether `mode` lets nothing happen that `other` would not let happen as easily.
fn is_as_strict(mode: PermissionMode, other: PermissionMode) -> bool {
    [
        PermissionLevel::None,
        PermissionLevel::ReadOnly,
        PermissionLevel::WorkspaceWrite,
        PermissionLevel::DangerFullAccess,
    ]
    .into_iter()
    .all(|level| ease(mode, level) <= ease(other, level))
}

/// How easily something of this level happens: not, after a question, at once.
fn ease(mode: PermissionMode, level: PermissionLevel) -> u8 {
    let grant = Grant { key: String::new(), words: String::new() };
    let requirement = Requirement { level, always_ask: None, grant };
    match PermissionPolicy::new(mode).verdict("", &requirement) {
        PermissionVerdict::Deny { .. } => 0,
        PermissionVerdict::Ask { .. } => 1,
        PermissionVerdict::Allow => 2,
    }
}

/// Objects merge, arrays join, anything else is replaced.
fn merge(into: &mut Map<String, Value>, key: String, value: Value) {
    match (into.get_mut(&key), value) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            for (key, value) in new {
                merge(old, key, value);
            }
        }
        (Some(Value::Array(old)), Value::Array(new)) => old.extend(new),
        (_, value) => {
            into.insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests;
