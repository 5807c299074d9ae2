//! Being woken when something may have happened to a file or folder, also when its folder does not
//! exist yet, goes away or comes back. Every event means "look again" and nothing more.
//!
//! Refuses to be relied on: file systems that deliver no events are the slow poll's business.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

/// A folder by path and identity: one that was replaced is another.
type Aim = (PathBuf, u64, u64);

pub(super) struct Watch {
    folder: PathBuf,
    wanted: Arc<Wanted>,
    changed: Arc<Notify>,
    watcher: Option<RecommendedWatcher>,
    aimed: Option<Aim>,
}

/// Which events matter.
struct Wanted {
    folder: PathBuf,
    /// Names of the folders on the way, since each of them may come and go.
    way: Vec<OsString>,
    /// The one file in the folder; none means every file.
    file: Option<OsString>,
}

impl Watch {
    /// Of one file. Absolute path.
    pub fn file(path: &Path) -> Self {
        let folder = path.parent().unwrap_or(Path::new("/"));
        Self::new(folder, path.file_name().map(OsString::from))
    }

    /// Of everything directly in a folder.
    pub fn folder(path: &Path) -> Self {
        Self::new(path, None)
    }

    fn new(folder: &Path, file: Option<OsString>) -> Self {
        let way = folder.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_os_string()),
            _ => None,
        });
        let wanted = Wanted { folder: folder.to_path_buf(), way: way.collect(), file };
        Self {
            folder: folder.to_path_buf(),
            wanted: Arc::new(wanted),
            changed: Arc::new(Notify::new()),
            watcher: None,
            aimed: None,
        }
    }

    /// Waits for the next event. One that came meanwhile is not lost.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Watches the folder, or the deepest of its parents that exists. To be called before each look:
    /// what happens after it is told.
    pub fn aim(&mut self) {
        // A folder may be made while its parent is being watched. More rounds are the next look's.
        for _ in 0..3 {
            let there = deepest(&self.folder);
            if there == self.aimed || !self.aim_at(there) {
                return;
            }
        }
    }

    /// As on a file system that delivers no events.
    #[cfg(test)]
    pub fn blind(&mut self) {
        self.watcher = None;
    }

    fn aim_at(&mut self, there: Option<Aim>) -> bool {
        let old = self.aimed.take();
        let (Some(watcher), Some(there)) = (self.watcher(), there) else { return false };
        if let Some((path, ..)) = old {
            // It may be gone, and its watch with it.
            let _ = watcher.unwatch(&path);
        }
        if let Err(error) = watcher.watch(&there.0, RecursiveMode::NonRecursive) {
            tracing::debug!(%error, "a folder cannot be watched; it is polled");
            return false;
        }
        self.aimed = Some(there);
        true
    }

    fn watcher(&mut self) -> Option<&mut RecommendedWatcher> {
        if self.watcher.is_none() {
            let (changed, wanted) = (Arc::clone(&self.changed), Arc::clone(&self.wanted));
            let made = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                // An error means that events may be missing.
                if event.is_err() || event.is_ok_and(|event| wanted.by(&event)) {
                    changed.notify_one();
                }
            });
            self.watcher = made
                .inspect_err(
                    |error| tracing::debug!(%error, "no file notification; files are polled"),
                )
                .ok();
        }
        self.watcher.as_mut()
    }
}

impl Wanted {
    fn by(&self, event: &notify::Event) -> bool {
        if event.need_rescan() {
            return true;
        }
        // Opening and reading is what we do ourselves.
        !event.kind.is_access() && event.paths.iter().any(|path| self.concerns(path))
    }

    /// By names, since some systems tell the path with links resolved.
    fn concerns(&self, path: &Path) -> bool {
        let Some(name) = path.file_name() else { return true };
        match &self.file {
            Some(file) if name == file => true,
            None if path.starts_with(&self.folder) => true,
            _ => self.way.iter().any(|part| part == name),
        }
    }
}

fn deepest(folder: &Path) -> Option<Aim> {
    folder.ancestors().find_map(|path| {
        let found = path.metadata().ok().filter(std::fs::Metadata::is_dir)?;
        Some((path.to_path_buf(), found.dev(), found.ino()))
    })
}

#[cfg(test)]
mod tests;
