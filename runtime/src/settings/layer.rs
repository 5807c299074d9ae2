//! Which files apply, from the weakest to the strongest.

use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// A settings file above this is a mistake.
const LARGEST_FILE_BYTES: u64 = 1024 * 1024;

/// Who a file speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The person, from the home folder.
    User,
    /// The project: it comes with the files that are worked on.
    Project,
}

/// A settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    pub scope: Scope,
    pub path: PathBuf,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = match self.scope {
            Scope::User => "user",
            Scope::Project => "project",
        };
        write!(f, "{scope}: {}", self.path.display())
    }
}

/// A file that was read.
pub(super) struct Source {
    pub layer: Layer,
    pub text: String,
}

/// Reads all files that are there, weakest first, and tells of those that cannot be read.
pub(super) fn read_all(
    workspace: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
) -> (Vec<Source>, Vec<String>) {
    let mut layers = user_layers(environment);
    for dir in folders_to(workspace) {
        for name in [".claw.json", ".claw/settings.json", ".claw/settings.local.json"] {
            let path = dir.join(name);
            // In the home folder the project's files are the person's own.
            if layers.iter().all(|layer| layer.path != path) {
                layers.push(Layer { scope: Scope::Project, path });
            }
        }
    }
    let mut sources = Vec::new();
    let mut warnings = Vec::new();
    for layer in layers {
        match read(&layer.path) {
            Ok((text, lossy)) => {
                if lossy {
                    warnings.push(format!(
                        "{}: not UTF-8; the odd characters were replaced",
                        layer.path.display()
                    ));
                }
                sources.push(Source { layer, text });
            }
            Err(error) if is_absent(&error) => {}
            Err(error) => {
                warnings.push(format!("{}: not read: {error}", layer.path.display()));
            }
        }
    }
    (sources, warnings)
}

/// The folders from the root of the repository down to the workspace: the workspace alone where
/// there is no repository.
pub(crate) fn folders_to(workspace: &Path) -> Vec<PathBuf> {
    let depth = workspace.ancestors().position(|dir| dir.join(".git").exists()).unwrap_or(0);
    let mut folders: Vec<PathBuf> =
        workspace.ancestors().take(depth + 1).map(Path::to_owned).collect();
    folders.reverse();
    folders
}

fn user_layers(environment: &dyn Fn(&str) -> Option<String>) -> Vec<Layer> {
    let Some(config_home) = config_home(environment) else { return Vec::new() };
    // `.claw.json` stands in the home folder, or inside a folder that the variable names: what is
    // around that folder may belong to anybody.
    let moved = environment("CLAW_CONFIG_HOME").is_some_and(|value| !value.is_empty());
    let home = if moved { Some(config_home.as_path()) } else { config_home.parent() };
    home.map(|home| home.join(".claw.json"))
        .into_iter()
        .chain([config_home.join("settings.json")])
        .map(|path| Layer { scope: Scope::User, path })
        .collect()
}

/// The person's own folder: `CLAW_CONFIG_HOME`, or `.claw` in the home folder.
pub fn config_home(environment: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("CLAW_CONFIG_HOME")
        .or_else(|| set("HOME").or_else(|| set("USERPROFILE")).map(|home| home.join(".claw")))
}

fn read(path: &Path) -> io::Result<(String, bool)> {
    // Only a plain file: a pipe in a project would hold the program up for ever.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(LARGEST_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_FILE_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
    })
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
