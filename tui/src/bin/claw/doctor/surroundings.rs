//! The program itself, its files, the terminal and the programs that it uses.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use claw_runtime::session::SessionStore;
use claw_runtime::settings;
use claw_tui::terminal::capabilities::Capabilities;
use claw_tui::terminal::clipboard;
use claw_tui::theme::ColourDepth;

use super::report::State;
use super::{Cause, Check, Report};
use crate::wiring::{self, Workspace};

const FILES: &str = "claw";
const TERMINAL: &str = "Terminal";

pub fn program(report: &mut Report) {
    let text = format!(
        "claw {} on {} {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    report.add(FILES, Check::new("version", State::Ok, text));
}

pub fn settings(report: &mut Report, workspace: &Workspace) {
    let files = workspace.settings.files();
    if files.is_empty() {
        let text = "no settings file; the defaults hold";
        report.add(FILES, Check::new("settings", State::Ok, text));
    }
    for file in files {
        report.add(FILES, Check::new("settings", State::Ok, format!("settings, {file}")));
    }
    for warning in workspace.settings.warnings() {
        let check = Check::new("settings", State::Problem(Cause::Settings), warning);
        report.add(FILES, check.next("mend the file; what is wrong in it is not used"));
    }
    if wiring::environment("CLAW_LOG").is_some() {
        let folder = settings::config_home(&wiring::environment).map(|home| home.join("logs"));
        let text = match folder {
            Some(folder) => format!("logs are written to {}", folder.display()),
            None => "logs are wanted, and there is no home folder for them".to_owned(),
        };
        report.add(FILES, Check::new("logs", State::Note, text));
    }
}

pub fn sessions(report: &mut Report, workspace: &Workspace) {
    let check = match SessionStore::open(&workspace.root) {
        Err(error) => Check::new("sessions", State::Problem(Cause::Sessions), error.to_string()),
        Ok(store) => match obstacle(store.folder()) {
            None => {
                let count = store.list(None).len();
                let s = if count == 1 { "" } else { "s" };
                let text = format!("{count} session{s} in {}", store.folder().display());
                Check::new("sessions", State::Ok, text)
            }
            Some((place, what)) => {
                let text = format!(
                    "conversations cannot be saved in {}: {} {what}",
                    store.folder().display(),
                    place.display()
                );
                Check::new("sessions", State::Problem(Cause::Sessions), text)
                    .next("make that folder writable, or work in another one")
            }
        },
    };
    report.add(FILES, check);
}

/// What stands in the way of files in this folder, which may not be there yet. Makes nothing.
fn obstacle(folder: &Path) -> Option<(PathBuf, &'static str)> {
    let there = folder.ancestors().find(|part| part.symlink_metadata().is_ok())?;
    if !there.is_dir() {
        return Some((there.to_owned(), "is not a folder"));
    }
    let needed = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    let may = rustix::fs::access(there, needed).is_ok();
    (!may).then(|| (there.to_owned(), "cannot be written to"))
}

pub fn terminal(report: &mut Report, capabilities: Capabilities) {
    let term = wiring::environment("TERM").unwrap_or_else(|| "nothing".to_owned());
    let screen = capabilities.check_screen(io::stdin().is_terminal(), io::stdout().is_terminal());
    report.add(
        TERMINAL,
        match screen {
            Ok(()) => {
                let size = crossterm::terminal::size()
                    .map_or_else(|_| "of unknown size".to_owned(), |(w, h)| format!("{w}x{h}"));
                Check::new("terminal", State::Ok, format!("a terminal, {size}, TERM is {term}"))
            }
            Err(error) => Check::new("terminal", State::Note, error.to_string()),
        },
    );
    let colours = match capabilities.colours {
        ColourDepth::TrueColour => "true colour",
        ColourDepth::Indexed => "256 colours (COLORTERM=truecolor would give more)",
        ColourDepth::Ansi16 => "16 colours",
        ColourDepth::None => "no colours (NO_COLOR is set, or TERM has none)",
    };
    report.add(TERMINAL, Check::new("colours", State::Ok, colours));
    let background = match capabilities.light_background {
        Some(true) => "a light background, by COLORFGBG",
        Some(false) => "a dark background, by COLORFGBG",
        None => "background unknown, dark is taken; the setting \"theme\" or /theme changes it",
    };
    report.add(TERMINAL, Check::new("background", State::Ok, background));
    let utf8 = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(wiring::environment)
        .is_some_and(|locale| locale.to_lowercase().replace('-', "").contains("utf8"));
    if !utf8 && !cfg!(target_os = "macos") {
        let text = "the locale does not say UTF-8; lines and marks may look wrong";
        report.add(TERMINAL, Check::new("locale", State::Note, text).next("set LANG to C.UTF-8"));
    }
    if capabilities.tmux {
        let text = "inside tmux: copying needs its set-clipboard or allow-passthrough option";
        report.add(TERMINAL, Check::new("tmux", State::Note, text));
    }
    if capabilities.ssh {
        let text = "over ssh: copying goes through the terminal (OSC 52)";
        report.add(TERMINAL, Check::new("ssh", State::Note, text));
    }
}

pub fn helpers(report: &mut Report, capabilities: Capabilities) {
    let named = ["VISUAL", "EDITOR"].into_iter().find_map(wiring::environment);
    let editor = named.clone().unwrap_or_else(|| "vi".to_owned());
    let program = editor.split_whitespace().next().unwrap_or_default();
    report.add(
        TERMINAL,
        match on_path(program) {
            Some(_) => Check::new("editor", State::Ok, format!("Ctrl+G opens {editor}")),
            None => Check::new(
                "editor",
                State::Note,
                format!("Ctrl+G would open {editor}, which is not there"),
            )
            .next("set VISUAL or EDITOR"),
        },
    );
    let programs = clipboard::programs(&capabilities);
    let found = programs.iter().find(|program| on_path(program.name).is_some());
    let text = match found {
        Some(program) => format!("text is copied with {}", program.name),
        None => "text is copied through the terminal (OSC 52), where it allows that".to_owned(),
    };
    report.add(TERMINAL, Check::new("clipboard", State::Ok, text));
}

fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&folders).map(|folder| folder.join(program));
    let mut all =
        candidates.chain([PathBuf::from(program)].into_iter().filter(|p| p.is_absolute()));
    all.find(|path| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok())
}
