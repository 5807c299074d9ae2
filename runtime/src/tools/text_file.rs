//! Text files: reading within limits, writing whole files at once, and the diff between two states.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};
use thiserror::Error;

use super::ToolFacts;
use super::scope::Stamp;
use super::workspace::{PathError, Resolved};

/// Larger files are neither read nor written.
pub(super) const MAX_FILE_BYTES: u64 = 10 * 1024 * 1024;
/// A NUL in this many first bytes means that the file is not text.
const BINARY_PROBE: usize = 8 * 1024;
/// Diffs for eyes are cut here; the counts are not.
const MAX_DIFF_BYTES: usize = 64 * 1024;
/// After this time a diff is finished coarsely.
const DIFF_DEADLINE: Duration = Duration::from_millis(200);

/// Why a file was not read or written.
#[derive(Debug, Error)]
pub(super) enum FileError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("{0} does not exist; check the path with glob_search")]
    Missing(String),
    #[error("{0} is a directory; list its files with glob_search")]
    Directory(String),
    #[error("{0} is not a regular file")]
    Special(String),
    #[error(
        "{path} has {bytes} bytes; the limit is 10 MiB. Look at parts of it with bash (head, tail, grep)"
    )]
    TooLarge { path: String, bytes: u64 },
    #[error("{0} is a binary file; only text is read and edited")]
    Binary(String),
    #[error("{0} is not UTF-8 text; editing would damage it. Change it with bash instead")]
    NotUtf8(String),
    #[error(
        "{0} is read-only; its mode was not changed. Make it writable first if that is intended"
    )]
    ReadOnly(String),
    #[error(
        "{0} changed since it was read; read it again before changing it, so that nobody's work is lost"
    )]
    Changed(String),
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
}

/// A file's bytes and what is known about it.
#[derive(Debug)]
pub(super) struct Loaded {
    pub bytes: Vec<u8>,
    pub stamp: Stamp,
}

/// Reads a text file within the limits.
pub(super) fn load(path: &Resolved) -> Result<Loaded, FileError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => FileError::Missing(path.shown.clone()),
        _ => FileError::Io { path: path.shown.clone(), source },
    };
    // Looked at before it is opened: opening a pipe would wait for a writer.
    let metadata = fs::metadata(&path.absolute).map_err(failed)?;
    check_kind(path, &metadata)?;
    let file = fs::File::open(&path.absolute).map_err(failed)?;
    let stamp = Stamp::of(&file.metadata().map_err(failed)?);
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(FileError::TooLarge { path: path.shown.clone(), bytes: metadata.len() });
    }
    if bytes[..bytes.len().min(BINARY_PROBE)].contains(&0) {
        return Err(FileError::Binary(path.shown.clone()));
    }
    Ok(Loaded { bytes, stamp })
}

fn check_kind(path: &Resolved, metadata: &fs::Metadata) -> Result<(), FileError> {
    if metadata.is_dir() {
        Err(FileError::Directory(path.shown.clone()))
    } else if !metadata.is_file() {
        Err(FileError::Special(path.shown.clone()))
    } else if metadata.len() > MAX_FILE_BYTES {
        Err(FileError::TooLarge { path: path.shown.clone(), bytes: metadata.len() })
    } else {
        Ok(())
    }
}

/// Writes the whole file or leaves it as it was. Keeps the mode of an existing file, makes missing
/// parents, follows no symlink (the path has none).
pub(super) fn save(path: &Resolved, content: &str) -> Result<Stamp, FileError> {
    let failed = |source: io::Error| FileError::Io { path: path.shown.clone(), source };
    if content.len() as u64 > MAX_FILE_BYTES {
        let bytes = content.len() as u64;
        return Err(FileError::TooLarge { path: path.shown.clone(), bytes });
    }
    let mode = match fs::metadata(&path.absolute) {
        Ok(metadata) => {
            check_kind(path, &metadata).or_else(|error| match error {
                FileError::TooLarge { .. } => Ok(()),
                other => Err(other),
            })?;
            if metadata.permissions().readonly() {
                return Err(FileError::ReadOnly(path.shown.clone()));
            }
            Some(metadata.permissions())
        }
        Err(_) => None,
    };
    let parent = path.absolute.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent).map_err(failed)?;
    // The mode of a new file goes through the process' umask, as if it had been opened plainly.
    let mut file = tempfile::Builder::new()
        .prefix(".claw-write-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(parent)
        .map_err(failed)?;
    file.write_all(content.as_bytes()).map_err(failed)?;
    if let Some(mode) = mode {
        file.as_file().set_permissions(mode).map_err(failed)?;
    }
    file.as_file().sync_data().map_err(failed)?;
    let file = file.persist(&path.absolute).map_err(|error| failed(error.error))?;
    Ok(Stamp::of(&file.metadata().map_err(failed)?))
}

/// True when every line end of the text is CRLF.
pub(super) fn is_crlf(text: &str) -> bool {
    let ends = text.matches('\n').count();
    ends > 0 && text.matches("\r\n").count() == ends
}

/// The text with CRLF line ends.
pub(super) fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// The difference between two states of a file, for eyes.
pub(super) fn diff_facts(path: &str, old: Option<&str>, new: &str) -> ToolFacts {
    let (diff, added, removed) = unified_diff(old.unwrap_or(""), new);
    ToolFacts::Diff { path: path.to_owned(), diff, added, removed, created: old.is_none() }
}

/// A unified diff without file headers, and the counts of added and removed lines.
pub(super) fn unified_diff(old: &str, new: &str) -> (String, u64, u64) {
    // Line ends are kept as they are when writing; in the picture they are noise.
    let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    let diff = TextDiff::configure().timeout(DIFF_DEADLINE).diff_lines(&old, &new);
    let (mut added, mut removed) = (0, 0);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    let mut text = diff.unified_diff().context_radius(3).to_string();
    if text.len() > MAX_DIFF_BYTES {
        let cut = text.floor_char_boundary(MAX_DIFF_BYTES);
        let cut = text[..cut].rfind('\n').map_or(cut, |at| at + 1);
        let left_out = text[cut..].lines().count();
        text.truncate(cut);
        let _ = writeln!(text, "... {left_out} more lines of this diff are not shown");
    }
    (text, added, removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(dir: &Path, name: &str) -> Resolved {
        Resolved { absolute: dir.join(name), shown: name.to_owned() }
    }

    #[test]
    fn a_written_file_keeps_its_mode_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = resolved(dir.path(), "run.sh");
        fs::write(&path.absolute, "old").unwrap();
        fs::set_permissions(&path.absolute, fs::Permissions::from_mode(0o754)).unwrap();
        save(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path.absolute).unwrap(), "new");
        assert_eq!(fs::metadata(&path.absolute).unwrap().permissions().mode() & 0o777, 0o754);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_not_a_text_file_within_the_limits_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        fs::write(dir.path().join("binary"), b"\x7fELF\0\0").unwrap();
        fs::File::create(dir.path().join("large")).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("pipe"), rustix::fs::Mode::RWXU)
            .unwrap();
        for (name, expected) in [
            ("folder", "is a directory"),
            ("binary", "is a binary file"),
            ("large", "10485761 bytes; the limit is 10 MiB"),
            ("pipe", "not a regular file"),
            ("missing", "does not exist"),
        ] {
            let error = load(&resolved(dir.path(), name)).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }

    #[test]
    fn a_read_only_file_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = resolved(dir.path(), "fixed");
        fs::write(&path.absolute, "old").unwrap();
        fs::set_permissions(&path.absolute, fs::Permissions::from_mode(0o444)).unwrap();
        assert!(matches!(save(&path, "new"), Err(FileError::ReadOnly(_))));
        assert_eq!(fs::read_to_string(&path.absolute).unwrap(), "old");
    }

    #[test]
    fn the_diff_has_three_lines_of_context_and_exact_counts() {
        let old = (1..=9).map(|n| format!("{n}\r\n")).collect::<Vec<_>>().concat();
        let new = old.replace("5\r\n", "five\r\nand\r\n");
        let (diff, added, removed) = unified_diff(&old, &new);
        assert_eq!(diff, "@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+and\n 6\n 7\n 8\n");
        assert_eq!((added, removed), (2, 1));
    }

    #[test]
    fn a_huge_diff_is_cut_and_says_so() {
        let new = "line of text\n".repeat(20_000);
        let (diff, added, _) = unified_diff("", &new);
        assert!(diff.len() < MAX_DIFF_BYTES + 100);
        assert!(diff.ends_with("more lines of this diff are not shown\n"), "{diff}");
        assert_eq!(added, 20_000);
    }
}
