//! The last line of a conversation: the command that continues it, as it can be typed in the folder
//! where the person is, or that there is nothing to continue.

use std::path::{Path, PathBuf};

use claw_tui::sanitise;

/// Where the program worked.
pub struct WayBack {
    pub root: PathBuf,
    /// The program was started in another folder.
    pub elsewhere: bool,
}

impl WayBack {
    /// `file` is where the session is kept, if that could be written.
    pub fn words(&self, session: &str, file: Option<&Path>) -> String {
        let Some(file) = file.filter(|file| file.is_file()) else {
            return "This conversation was not saved; there is nothing to resume.".to_owned();
        };
        let folder =
            if self.elsewhere { format!("-C {} ", quoted(&self.root)) } else { String::new() };
        // An id is looked for among the sessions of the workspace only.
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let own = self.root.join(".claw").join("sessions");
        let session = if file.starts_with(&own) { session.to_owned() } else { quoted(&file) };
        let command = format!("claw tui {folder}--resume {session}");
        format!("Resume with: {}", sanitise::reveal(&command))
    }
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+@%:,=".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        return path.into_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(elsewhere: bool, below: &str, expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("it's here");
        let file = root.join(below);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "").unwrap();
        let shown = root.display().to_string();
        let words = WayBack { root, elsewhere }.words("session-1", Some(&file));
        let words = words.replace(&shown.replace('\'', r"'\''"), "ROOT");
        assert_eq!(words, expected);
    }

    #[test]
    fn the_command_names_the_folder_and_the_file_where_it_has_to() {
        let own = ".claw/sessions/abc/session-1.jsonl";
        check(false, own, "Resume with: claw tui --resume session-1");
        check(true, own, "Resume with: claw tui -C 'ROOT' --resume session-1");
        check(false, "copy/s.jsonl", "Resume with: claw tui --resume 'ROOT/copy/s.jsonl'");
    }

    #[test]
    fn nothing_is_named_that_is_not_there() {
        let way_back = WayBack { root: "/nowhere".into(), elsewhere: true };
        for file in [None, Some(Path::new("/nowhere/.claw/sessions/a/session-1.jsonl"))] {
            assert!(way_back.words("session-1", file).contains("was not saved"), "{file:?}");
        }
    }
}
