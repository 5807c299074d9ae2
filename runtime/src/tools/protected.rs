//! Files whose change runs code or grants rights later: changing them is asked in every mode.

use std::path::{Component, Path};

use super::workspace::Workspace;

/// Folders, anywhere in the workspace, and what is special about them.
const FOLDERS: [(&str, &str); 3] = [
    (".git", "git runs its hooks and obeys its configuration"),
    (".claw", "it holds this program's settings, permissions and hooks"),
    (".claude", "it holds settings, permissions and hooks"),
];

const FILES: [(&str, &str); 19] = [
    (".claw.json", "it holds this program's settings, permissions and hooks"),
    (".claude.json", "it holds settings, permissions and hooks"),
    (".mcp.json", "it names commands that are started as servers"),
    (".gitconfig", "git obeys it and runs commands that it names"),
    (".gitmodules", "git fetches what it names"),
    (".npmrc", "npm obeys it and runs what it names"),
    (".bashrc", SHELL),
    (".bash_profile", SHELL),
    (".bash_login", SHELL),
    (".bash_logout", SHELL),
    (".bash_aliases", SHELL),
    (".profile", SHELL),
    (".zshrc", SHELL),
    (".zshenv", SHELL),
    (".zprofile", SHELL),
    (".zlogin", SHELL),
    (".zlogout", SHELL),
    (".kshrc", SHELL),
    (".cshrc", SHELL),
];

const SHELL: &str = "shells run it when they start or end";
const ENVIRONMENT: &str = "it holds settings and secrets of the environment";

/// Why changing the file always asks; none for ordinary files and for paths that are refused
/// anyway. Both the path as it is spelled and the file it really names count.
pub(super) fn why_protected(workspace: &Workspace, given: &str) -> Option<String> {
    let resolved = workspace.resolve(given).ok()?;
    let real = resolved.absolute.strip_prefix(workspace.root()).ok()?;
    let spelled = workspace.spelled(given);
    let (path, why) = [Some(real), spelled.as_deref()]
        .into_iter()
        .flatten()
        .find_map(|path| Some((path, reason(path)?)))?;
    Some(format!("{} is protected: {why}", path.display()))
}

/// Why a command that names this word is asked. The text is all that is looked at: no link is
/// followed, and what lies above the workspace does not count.
pub(super) fn why_named(root: &Path, word: &str) -> Option<String> {
    let path = Path::new(word);
    let why = reason(path.strip_prefix(root).unwrap_or(path))?;
    Some(format!("this command names a protected file, {word}: {why}"))
}

/// Why changing a file beyond the workspace is asked in every mode.
pub(super) fn why_beyond(path: &Path) -> Option<String> {
    reason(path).map(|why| format!("{} is protected: {why}", path.display()))
}

fn reason(path: &Path) -> Option<&'static str> {
    let names: Vec<String> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(fold(&name.to_string_lossy())),
            _ => None,
        })
        .collect();
    let folder =
        FOLDERS.iter().find(|(folder, _)| names.iter().any(|name| name == folder)).map(|row| row.1);
    let file = names.last().and_then(|last| {
        if last.starts_with(".env") {
            return Some(ENVIRONMENT);
        }
        FILES.iter().find(|(file, _)| file == last).map(|row| row.1)
    });
    folder.or(file)
}

/// File systems that ignore case also ignore some invisible characters, or dots at the end.
fn fold(name: &str) -> String {
    let visible = name.chars().filter(|c| {
        !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    });
    let folded: String = visible.flat_map(char::to_lowercase).collect();
    folded.trim_end_matches(['.', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn protected_files_are_found_in_every_spelling() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join(".git/hooks")).unwrap();
        fs::write(root.join("plain"), "").unwrap();
        symlink(".git/hooks", root.join("hooks")).unwrap();
        symlink("plain", root.join(".env.link")).unwrap();
        let workspace = Workspace::new(root).unwrap();
        let absolute = workspace.root().join(".git/config").display().to_string();
        for (given, expected) in [
            (".git/hooks/pre-commit", true),
            ("./src/../.git/config", true),
            (absolute.as_str(), true),
            (".GIT/config", true),
            (".g\u{200c}it/config", true),
            (".git./config", true),
            (".env. ", true),
            ("sub/.npmrc", true),
            ("vendor/lib/.git/config", true),
            (".git", true),
            ("hooks/pre-commit", true),
            (".claw/settings.json", true),
            (".claude/settings.local.json", true),
            (".claw.json", true),
            (".mcp.json", true),
            ("sub/.bashrc", true),
            (".env", true),
            (".env.local", true),
            (".envrc", true),
            (".env.link", true),
            ("plain", false),
            (".gitignore", false),
            ("src/environment.rs", false),
            (".github/workflows/ci.yml", false),
            ("../.git/config", false), // refused by the boundary
        ] {
            assert_eq!(why_protected(&workspace, given).is_some(), expected, "{given}");
        }
    }
}
