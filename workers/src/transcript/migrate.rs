//! Brings a session along to another account: its transcript and what lies in its folder (those of
//! its sub-agents), copied from one config dir to another.
//!
//! Refuses to delete or change anything where it comes from, and to lose a byte where it goes: a file
//! there that says something else stays, and nothing is copied then. A copy that fails half-way is
//! taken back. The transcript itself comes last, so that whoever finds it finds all of it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Bytes that are compared at a time.
const PIECE: usize = 64 * 1024;

/// Why a session could not be brought along. Nothing was changed.
#[derive(Debug, Error)]
pub enum MigrateError {
    /// Another session, or another course of this one.
    #[error("{} is there already and says something else", .0.display())]
    Differs(PathBuf),
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Migrated {
    /// There is no such session where it should come from.
    Nothing,
    /// All of it was there already.
    Known,
    Copied,
}

/// Copies the session whose transcript is `from` to where its transcript is `to`. What is there
/// already and is the same or goes on from it is left alone; what is the beginning of it is continued.
/// Blocks on files.
pub fn migrate(from: &Path, to: &Path) -> Result<Migrated, MigrateError> {
    if !from.is_file() {
        return Ok(Migrated::Nothing);
    }
    let mut files = Vec::new();
    let (own, there) = (from.with_extension(""), to.with_extension(""));
    below(&own, &there, &mut files)?;
    files.push((from.to_owned(), to.to_owned()));
    // Before the first byte is written.
    let mut plan = Vec::new();
    for (from, to) in files {
        match relation(&from, &to).map_err(|source| failed(&to, source))? {
            Relation::Missing => plan.push((from, to, None)),
            Relation::Beginning(length) => plan.push((from, to, Some(length))),
            Relation::Whole => {}
            Relation::Other => return Err(MigrateError::Differs(to)),
        }
    }
    if plan.is_empty() {
        return Ok(Migrated::Known);
    }
    let mut made = Made(Vec::new());
    for (from, to, length) in plan {
        made.copy(&from, &to, length).map_err(|source| failed(&to, source))?;
    }
    made.keep();
    Ok(Migrated::Copied)
}

fn failed(path: &Path, source: io::Error) -> MigrateError {
    MigrateError::Io { path: path.to_owned(), source }
}

/// Every file below a folder with its place below another one. Links are no part of a session.
fn below(from: &Path, to: &Path, files: &mut Vec<(PathBuf, PathBuf)>) -> Result<(), MigrateError> {
    let entries = match from.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(failed(from, source)),
    };
    for entry in entries {
        let entry = entry.map_err(|source| failed(from, source))?;
        let kind = entry.file_type().map_err(|source| failed(from, source))?;
        let to = to.join(entry.file_name());
        if kind.is_dir() {
            below(&entry.path(), &to, files)?;
        } else if kind.is_file() {
            files.push((entry.path(), to));
        }
    }
    Ok(())
}

/// What the file where it goes is to the file that it comes from.
#[derive(Debug, PartialEq, Eq)]
enum Relation {
    Missing,
    /// This many bytes of it.
    Beginning(u64),
    /// The same, or it goes on from it.
    Whole,
    Other,
}

fn relation(from: &Path, to: &Path) -> io::Result<Relation> {
    match to.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Relation::Missing),
        Err(error) => return Err(error),
        Ok(found) if !found.is_file() => return Ok(Relation::Other),
        Ok(_) => {}
    }
    let (mut from, mut to) = (BufReader::new(File::open(from)?), BufReader::new(File::open(to)?));
    let (mut ours, mut theirs) = (vec![0; PIECE], vec![0; PIECE]);
    let mut same = 0;
    loop {
        let (here, there) = (fill(&mut from, &mut ours)?, fill(&mut to, &mut theirs)?);
        let both = here.min(there);
        if ours[..both] != theirs[..both] {
            return Ok(Relation::Other);
        }
        same += both as u64;
        match here.cmp(&there) {
            std::cmp::Ordering::Greater => return Ok(Relation::Beginning(same)),
            std::cmp::Ordering::Less => return Ok(Relation::Whole),
            std::cmp::Ordering::Equal if here == 0 => return Ok(Relation::Whole),
            std::cmp::Ordering::Equal => {}
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// One thing that was made.
enum Trace {
    Folder(PathBuf),
    File(PathBuf),
    /// It had this many bytes before.
    Longer(PathBuf, u64),
}

/// What was made so far. Dropping it takes that back.
struct Made(Vec<Trace>);

impl Made {
    fn copy(&mut self, from: &Path, to: &Path, length: Option<u64>) -> io::Result<()> {
        let folder = to.parent().unwrap_or(Path::new("/"));
        self.folder(folder)?;
        let mut source = File::open(from)?;
        if let Some(length) = length {
            let mut target = OpenOptions::new().append(true).open(to)?;
            self.0.push(Trace::Longer(to.to_owned(), length));
            source.seek(SeekFrom::Start(length))?;
            io::copy(&mut source, &mut target)?;
            return target.sync_all();
        }
        // Under its own name only when it is whole. Only its owner may read it, as the CLI has it.
        let mut beside = tempfile::NamedTempFile::new_in(folder)?;
        io::copy(&mut source, &mut beside)?;
        beside.as_file().sync_all()?;
        beside.persist_noclobber(to).map_err(|error| error.error)?;
        self.0.push(Trace::File(to.to_owned()));
        Ok(())
    }

    fn folder(&mut self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        if let Some(parent) = folder.parent() {
            self.folder(parent)?;
        }
        DirBuilder::new().mode(0o700).create(folder)?;
        self.0.push(Trace::Folder(folder.to_owned()));
        Ok(())
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for trace in self.0.drain(..).rev() {
            // What cannot be taken back is a copy that nobody looks for.
            let _ = match trace {
                Trace::File(path) => fs::remove_file(path),
                Trace::Folder(path) => fs::remove_dir(path),
                Trace::Longer(path, length) => {
                    OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(length))
                }
            };
        }
    }
}

#[cfg(test)]
mod tests;
