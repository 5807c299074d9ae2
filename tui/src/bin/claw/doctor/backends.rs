//! Who could answer: the same table as everywhere, with what configures each row and where it goes.

use std::sync::Arc;

use claw_runtime::api::transport::address_without_secrets;
use claw_runtime::driver::{BackendRow, Backends};
use claw_runtime::redact::Redactor;
use claw_runtime::session::SessionStore;
use claw_workers::Host;

use super::report::State;
use super::{Cause, Check, Report};
use crate::args::Common;
use crate::claude::{self, Surroundings};
use crate::wiring::{self, Failing, Workspace};

const GROUP: &str = "Back-ends";

pub fn all(report: &mut Report, workspace: &Workspace, common: &Common) {
    let sessions = SessionStore::open(&workspace.root).map(|store| store.folder().to_owned());
    let around = Surroundings {
        root: workspace.root.clone(),
        sessions: sessions.unwrap_or_default(),
        redactor: Redactor::from_env(std::iter::empty::<String>()),
        host: Arc::new(Host::default()),
    };
    let mut backends = Backends::new(wiring::rows(&workspace.settings, around));
    for row in backends.rows() {
        report.add(GROUP, row_check(row));
    }
    let names = backends.names();
    let opened =
        wiring::open_backend(&mut backends, common, &workspace.settings, None, Failing::GoesOn);
    let id = "backend";
    report.add(
        GROUP,
        match opened {
            Ok(backend)
                if backend.name == "demo"
                    && names.iter().all(|n| n == "demo" || n == claude::NAME) =>
            {
                let text = "only the embedded demo would answer";
                let next = if names.iter().any(|name| name == claude::NAME) {
                    "set ANTHROPIC_API_KEY or another key, or start with --backend claude"
                } else {
                    "set ANTHROPIC_API_KEY or another key, or install Claude Code"
                };
                // The demo is what was asked for, then.
                let asked = common.backend.is_some() || workspace.settings.backend().is_some();
                let state = if asked || names.iter().any(|name| name == claude::NAME) {
                    State::Note
                } else {
                    State::Problem(Cause::NoBackend)
                };
                Check::new(id, state, text).next(next)
            }
            // What it lacks is said below.
            Ok(backend) if backend.name == claude::NAME => {
                Check::new(id, State::Ok, "claude is asked for; see below")
            }
            Ok(backend) => {
                let model = if backend.model.is_empty() {
                    "its own choice of model"
                } else {
                    &backend.model
                };
                Check::new(id, State::Ok, format!("{} would answer, with {model}", backend.name))
            }
            Err(error) => Check::new(id, State::Problem(Cause::NoBackend), error.to_string())
                .next("name another with --backend, or mend what it needs"),
        },
    );
}

/// Whether Claude Code is what would answer: then what it lacks is a problem.
pub fn wants_claude(workspace: &Workspace, common: &Common) -> bool {
    let named = common.backend.map(|name| name.as_str().to_owned());
    named.or_else(|| workspace.settings.backend()).as_deref() == Some(claude::NAME)
}

fn row_check(row: &BackendRow) -> Check {
    let id = format!("backend.{}", row.name);
    // Names only; what they hold is nobody's business.
    let set: Vec<&str> =
        row.variables.iter().copied().filter(|name| wiring::environment(name).is_some()).collect();
    let by = if set.is_empty() { String::new() } else { format!(", by {}", set.join(" and ")) };
    let to =
        row.address.as_deref().map(|address| format!(", at {}", address_without_secrets(address)));
    let to = to.unwrap_or_default();
    if row.configured && row.name == claude::NAME {
        return Check::new(id, State::Ok, format!("{}: its program is there; see below", row.name));
    }
    if row.configured {
        return Check::new(id, State::Ok, format!("{}: ready{by}{to}", row.name));
    }
    let lacks = match row.variables.first() {
        Some(variable) => format!("{variable} is not set"),
        None => "its program is not there".to_owned(),
    };
    Check::new(id, State::Unset, format!("{}: {lacks}", row.name))
}
