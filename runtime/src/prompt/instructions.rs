//! Instruction files: the person's own, then the project's from its root down to the workspace.
//!
//! Long files are cut and that is told. Files that lead out of the project (a link to a key, say)
//! are refused, and imports inside a file are not followed.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::redact::Redactor;
use crate::settings::folders_to;

/// Characters of one file, and of all together.
const FILE_CHARS: usize = 4_000;
const TOTAL_CHARS: usize = 12_000;
/// Nothing beyond this is even read.
const LARGEST_READ_BYTES: u64 = 1024 * 1024;

/// In every folder, in this order.
const NAMES: [&str; 7] = [
    "CLAUDE.md",
    "CLAW.md",
    "AGENTS.md",
    "CLAUDE.local.md",
    ".claw/CLAUDE.md",
    ".claude/CLAUDE.md",
    ".claw/instructions.md",
];
/// Folders of rules, after the files, each in order of names.
const RULE_FOLDERS: [&str; 2] = [".claw/rules", ".claw/rules.local"];
const RULE_ENDINGS: [&str; 3] = ["md", "txt", "mdc"];

/// An instruction file as it is in the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    pub path: PathBuf,
    pub text: String,
    /// Characters that the file has; more than `text` has when it was cut.
    pub chars: usize,
}

#[derive(Debug, Default)]
pub(super) struct Found {
    pub files: Vec<InstructionFile>,
    pub warnings: Vec<String>,
}

/// Reads the first of `user_files` that exists, then the project's files.
pub(super) fn read_all(workspace: &Path, user_files: &[PathBuf], redactor: Redactor) -> Found {
    let mut reader = Reader { redactor, ..Reader::default() };
    if let Some(own) = user_files.iter().find(|path| path.is_file()) {
        reader.take(own, None);
    }
    let folders = folders_to(workspace);
    let root = folders.first().and_then(|root| root.canonicalize().ok());
    for folder in &folders {
        for name in NAMES {
            reader.take(&folder.join(name), root.as_deref());
        }
        for rules in RULE_FOLDERS {
            for path in rule_files(&folder.join(rules)) {
                reader.take(&path, root.as_deref());
            }
        }
    }
    reader.found
}

/// The block of the prompt; none without files.
pub(super) fn block(files: &[InstructionFile]) -> Option<String> {
    if files.is_empty() {
        return None;
    }
    let mut text = String::from(
        "# Instructions from files\n\nWritten by the user or the project for work here. Follow them; where they disagree, the later file counts, and what the user says in the conversation counts most.\n",
    );
    for file in files {
        let path = super::plain(&file.path.to_string_lossy());
        let _infallible =
            write!(text, "\n<instructions file=\"{path}\">\n{}\n</instructions>\n", file.text);
    }
    Some(text.trim_end().to_owned())
}

fn rule_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension().is_some_and(|ending| RULE_ENDINGS.iter().any(|e| ending == *e))
        })
        .collect();
    files.sort();
    files
}

#[derive(Default)]
struct Reader {
    found: Found,
    redactor: Redactor,
    seen_paths: HashSet<PathBuf>,
    used_chars: usize,
}

impl Reader {
    /// Takes a file in; one that is not there is passed over. With `root`, it must be inside.
    fn take(&mut self, path: &Path, root: Option<&Path>) {
        let Ok(real) = path.canonicalize() else { return };
        if root.is_some_and(|root| !real.starts_with(root)) {
            self.warn(path, "leads out of the project; it was not read");
            return;
        }
        // Two names of one file (a link from AGENTS.md to CLAUDE.md) say it once.
        if !self.seen_paths.insert(real.clone()) {
            return;
        }
        let bytes = match read(&real) {
            Ok(bytes) => bytes,
            Err(error) => return self.warn(path, &format!("not read: {error}")),
        };
        let text = String::from_utf8_lossy(&bytes);
        if matches!(text, Cow::Owned(_)) {
            self.warn(path, "is not UTF-8; the odd characters were replaced");
        }
        let text = without_invisible(text.trim_start_matches('\u{feff}'));
        let text = self.redactor.redact(text.trim());
        if matches!(text, Cow::Owned(_)) {
            self.warn(path, "holds a key or token; it was hidden from the model");
        }
        let text = text.as_ref();
        let known = self.found.files.iter().any(|file| file.text == text);
        if text.is_empty() || known {
            return;
        }
        if text.lines().any(is_import) {
            self.warn(path, "has lines that import other files with @; those are not followed");
        }
        self.add(path, text);
    }

    fn add(&mut self, path: &Path, text: &str) {
        let chars = text.chars().count();
        let room = TOTAL_CHARS.saturating_sub(self.used_chars).min(FILE_CHARS);
        if room == 0 {
            let problem = format!(
                "left out of the prompt: all instruction files together may have {TOTAL_CHARS} characters"
            );
            return self.warn(path, &problem);
        }
        let mut shown: String = text.chars().take(room).collect();
        self.used_chars += chars.min(room);
        if chars > room {
            let problem = format!(
                "only the first {room} of its {chars} characters are in the prompt (a file may have {FILE_CHARS}, all together {TOTAL_CHARS})"
            );
            self.warn(path, &problem);
            let _infallible =
                write!(shown, "\n[cut: {} more characters in the file]", chars - room);
        }
        self.found.files.push(InstructionFile { path: path.to_owned(), text: shown, chars });
    }

    fn warn(&mut self, path: &Path, problem: &str) {
        self.found.warnings.push(format!("{}: {problem}", path.display()));
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Only a plain file: a pipe in a project would hold the program up for ever.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(LARGEST_READ_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Without characters that a person who reviews the file would not see, but a model would read.
fn without_invisible(text: &str) -> String {
    text.chars()
        .filter(|c| match c {
            '\n' | '\t' => true,
            // Without width; direction overrides and isolates; tag characters.
            '\u{200b}'
            | '\u{2060}'
            | '\u{feff}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{e0000}'..='\u{e007f}' => false,
            c => !c.is_control(),
        })
        .collect()
}

fn is_import(line: &str) -> bool {
    line.trim().strip_prefix('@').is_some_and(|rest| {
        !rest.contains(char::is_whitespace)
            && (rest.contains('/')
                || Path::new(rest).extension().is_some_and(|ending| ending == "md"))
    })
}
