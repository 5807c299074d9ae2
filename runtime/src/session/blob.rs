//! Long texts beside the session file.
//!
//! claw-code keeps at most 16,384 characters of any string in a record, so a record of ours does the
//! same and names a side file with the whole text. Names come from the content: the same text
//! written again (a fork, a compaction) is the same file.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::disk;
use super::identity::fnv1a;

/// Longest string in a record, in characters.
pub(super) const FIELD_LIMIT_CHARS: usize = 16_384;
/// A side file above this is not read back.
const LARGEST_BLOB_BYTES: u64 = 256 * 1024 * 1024;

/// The side file that holds the whole of a field that was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BlobRef {
    /// Name inside the session's side folder.
    pub file: String,
    /// Size of the whole text, to notice a torn file.
    pub bytes: u64,
}

/// The side folder of a session file, `<stem>.d`. Made when the first long text comes.
#[derive(Debug)]
pub(super) struct BlobDir {
    dir: PathBuf,
    unsynced: Vec<File>,
}

impl BlobDir {
    pub(super) fn beside(session_file: &Path) -> Self {
        Self { dir: session_file.with_extension("d"), unsynced: Vec::new() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.dir
    }

    /// Keeps `text` and says where.
    pub(super) fn keep(&mut self, text: &str) -> io::Result<BlobRef> {
        disk::create_private_dir(&self.dir)?;
        let bytes = text.len() as u64;
        let stem = format!("{:016x}-{bytes}", fnv1a(text.as_bytes()));
        // The hash is not a cryptographic one: a name that is taken is compared, never trusted.
        for attempt in 0_u32.. {
            let file =
                if attempt == 0 { format!("{stem}.txt") } else { format!("{stem}-{attempt}.txt") };
            let path = self.dir.join(&file);
            match disk::create_private_file(&path) {
                Ok(mut handle) => {
                    if let Err(error) = handle.write_all(text.as_bytes()) {
                        let _ = fs::remove_file(&path);
                        return Err(error);
                    }
                    self.unsynced.push(handle);
                    return Ok(BlobRef { file, bytes });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
                        return Ok(BlobRef { file, bytes });
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// The whole text; none when the file is missing, torn, or not in the side folder.
    pub(super) fn fetch(&self, blob: &BlobRef) -> Option<String> {
        let is_plain_name = Path::new(&blob.file).file_name() == Some(blob.file.as_ref());
        if !is_plain_name || blob.bytes > LARGEST_BLOB_BYTES {
            return None;
        }
        let path = self.dir.join(&blob.file);
        if fs::metadata(&path).ok()?.len() != blob.bytes {
            return None;
        }
        fs::read_to_string(path).ok()
    }

    /// Makes what was kept since the last call survive a power cut.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.unsynced.is_empty() {
            return Ok(());
        }
        for file in &self.unsynced {
            file.sync_data()?;
        }
        self.unsynced.clear();
        disk::sync_dir(&self.dir)
    }
}

/// The part of a long text that stays in the record; none when the text is short enough.
pub(super) fn head_of_long(text: &str, limit_chars: usize) -> Option<&str> {
    if text.len() <= limit_chars {
        return None;
    }
    text.char_indices().nth(limit_chars).map(|(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_one_file_and_a_taken_name_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let mut blobs = BlobDir::beside(&dir.path().join("s.jsonl"));
        let first = blobs.keep("long text").unwrap();
        assert_eq!(blobs.keep("long text").unwrap(), first);
        fs::write(blobs.path().join(&first.file), "9 bytes!!").unwrap();
        let second = blobs.keep("long text").unwrap();
        assert_ne!(second, first);
        assert_eq!(blobs.fetch(&second).as_deref(), Some("long text"));
    }

    #[test]
    fn a_blob_outside_the_folder_or_torn_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut blobs = BlobDir::beside(&dir.path().join("s.jsonl"));
        let kept = blobs.keep("whole").unwrap();
        fs::write(dir.path().join("secret"), "12345").unwrap();
        for file in ["../secret", "/etc/hostname", "..", ""] {
            assert_eq!(blobs.fetch(&BlobRef { file: file.into(), bytes: 5 }), None, "{file}");
        }
        assert_eq!(blobs.fetch(&BlobRef { bytes: 6, ..kept }), None);
    }

    #[test]
    fn long_is_counted_in_characters() {
        assert_eq!(head_of_long(&"ä".repeat(10), 10), None);
        assert_eq!(head_of_long(&"ä".repeat(11), 10), Some("ä".repeat(10).as_str()));
        assert_eq!(head_of_long("short", 10), None);
    }
}
