//! Logs go to files, never to the terminal, and only when CLAW_LOG asks for them.
//!
//! Whatever goes wrong with a log is silent: a word on standard error would stand on the screen.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;

/// Files kept; one a day.
const KEPT: usize = 5;

/// Starts logging to `<config home>/logs` when CLAW_LOG holds a filter such as `info` or
/// `claw_runtime=debug`. The guard flushes when dropped.
pub fn start(config_home: Option<PathBuf>) -> Option<WorkerGuard> {
    let filter = std::env::var("CLAW_LOG").ok().filter(|filter| !filter.is_empty())?;
    let files = DailyFile::open(config_home?.join("logs")).ok()?;
    let (writer, guard) = tracing_appender::non_blocking(files);
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info")))
        .with_writer(writer)
        .with_ansi(false)
        .log_internal_errors(false)
        .try_init()
        .ok()?;
    Some(guard)
}

/// A file for each day, readable only by its owner; those of earlier days go.
struct DailyFile {
    folder: PathBuf,
    day: String,
    file: File,
}

impl DailyFile {
    fn open(folder: PathBuf) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let day = today();
        let file = open_day(&folder, &day)?;
        Ok(Self { folder, day, file })
    }

    /// Goes on in the next file when the day has changed.
    fn turn(&mut self) -> io::Result<()> {
        let today = today();
        if today != self.day {
            self.file = open_day(&self.folder, &today)?;
            self.day = today;
        }
        Ok(())
    }
}

impl Write for DailyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.turn()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        // Files are not buffered here, and an error would be printed by the thread that asks.
        Ok(())
    }
}

/// The day of now in UTC, as `2031-05-07`.
fn today() -> String {
    let mut now = Timestamp::now().to_string();
    now.truncate(now.find('T').unwrap_or(now.len()));
    now
}

fn open_day(folder: &Path, day: &str) -> io::Result<File> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(folder.join(format!("claw.{day}.log")))?;
    forget_old(folder);
    Ok(file)
}

/// Removes all but the newest files. What cannot be removed stays.
fn forget_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let is_ours = |name: &str| name.starts_with("claw.") && name.strip_suffix(".log").is_some();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_ours(name))
        .collect();
    names.sort();
    for name in names.iter().rev().skip(KEPT) {
        let _ = fs::remove_file(folder.join(name));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn logs_are_for_their_owner_and_old_ones_go() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("new/logs");
        let mut first = DailyFile::open(folder.clone()).unwrap();
        first.write_all(b"a line\n").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        let today = folder.join(format!("claw.{}.log", first.day));
        assert_eq!(mode(&today), 0o600);
        for day in 1..=7 {
            fs::write(folder.join(format!("claw.2001-01-0{day}.log")), "").unwrap();
        }
        fs::write(folder.join("other.txt"), "").unwrap();
        DailyFile::open(folder.clone()).unwrap().write_all(b"another\n").unwrap();
        assert_eq!(fs::read_to_string(today).unwrap(), "a line\nanother\n");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), KEPT + 1);
    }
}
