//! The workspace boundary: which file a path of the model really names, and whether it may be
//! touched. Symlinks are followed before the decision; nothing outside is opened, ever.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

/// More links than this in one path is a loop.
const MAX_LINKS: usize = 40;

/// Why a path is not usable.
#[derive(Debug, Error)]
pub(super) enum PathError {
    #[error("the path is empty; give a path inside the workspace")]
    Empty,
    #[error(
        "{given}: `~` is not expanded, and the home folder is outside the workspace {root}; give a path inside the workspace"
    )]
    Tilde { given: String, root: String },
    #[error("{given} is outside the workspace {root}; file tools only reach files inside it")]
    Outside { given: String, root: String },
    #[error(
        "{given} leads through a symlink to {target}, outside the workspace {root}; file tools only reach files inside it"
    )]
    LeadsOutside { given: String, target: String, root: String },
    #[error("the workspace folder {root} is gone; nothing is written until it is there again")]
    Gone { root: String },
    #[error("{given} passes through too many symlinks; there is a loop")]
    Loop { given: String },
    #[error("{given} cannot be reached: {source}")]
    Io { given: String, source: io::Error },
}

/// A path that was checked against the boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    /// Free of symlinks and dots. The file need not exist.
    pub absolute: PathBuf,
    /// For people and models: relative to the workspace, or absolute where it lies elsewhere.
    pub shown: String,
}

/// The folder that file tools may touch.
#[derive(Debug)]
pub(super) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Binds to this folder, which must exist.
    pub fn new(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        if root.is_dir() { Ok(Self { root }) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    /// The folder, canonical.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file that a path of the model names, if it is inside the workspace.
    pub fn resolve(&self, given: &str) -> Result<Resolved, PathError> {
        self.resolve_or_below(given, None)
    }

    /// As [`Workspace::resolve`], and below `also` too.
    pub fn resolve_or_below(
        &self,
        given: &str,
        also: Option<&Path>,
    ) -> Result<Resolved, PathError> {
        if given.trim().is_empty() {
            return Err(PathError::Empty);
        }
        let root = || self.root.display().to_string();
        if given == "~" || given.starts_with("~/") {
            return Err(PathError::Tilde { given: given.to_owned(), root: root() });
        }
        // Making the folders of a file must not bring back a workspace that was deleted.
        if !self.root.is_dir() {
            return Err(PathError::Gone { root: root() });
        }
        let absolute = follow(&self.root, given)?;
        if absolute.starts_with(&self.root) || also.is_some_and(|dir| absolute.starts_with(dir)) {
            return Ok(Resolved { shown: self.shown(&absolute), absolute });
        }
        Err(if self.spelled(given).is_some() {
            PathError::LeadsOutside {
                given: given.to_owned(),
                target: absolute.display().to_string(),
                root: root(),
            }
        } else {
            PathError::Outside { given: given.to_owned(), root: root() }
        })
    }

    /// The path relative to the root, `.` for the root itself.
    pub fn shown(&self, absolute: &Path) -> String {
        match absolute.strip_prefix(&self.root) {
            Ok(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
            Ok(relative) => relative.display().to_string(),
            Err(_) => absolute.display().to_string(),
        }
    }

    /// The path as it is spelled, relative to the root, dots removed, no link followed. None when
    /// it is spelled as a path outside.
    pub fn spelled(&self, given: &str) -> Option<PathBuf> {
        let mut path = PathBuf::new();
        for component in self.root.join(given).components() {
            match component {
                Component::ParentDir => {
                    path.pop();
                }
                Component::CurDir => {}
                other => path.push(other),
            }
        }
        path.strip_prefix(&self.root).ok().map(Path::to_path_buf)
    }
}

/// Follows every symlink of the path, also where the end does not exist (yet).
fn follow(root: &Path, given: &str) -> Result<PathBuf, PathError> {
    let mut todo: VecDeque<OsString> = parts(&root.join(given));
    let mut reached = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = todo.pop_front() {
        if part == ".." {
            reached.pop();
            continue;
        }
        let next = reached.join(&part);
        match next.symlink_metadata() {
            Ok(found) if found.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(PathError::Loop { given: given.to_owned() });
                }
                let target = next
                    .read_link()
                    .map_err(|source| PathError::Io { given: given.to_owned(), source })?;
                if target.is_absolute() {
                    reached = PathBuf::from("/");
                }
                for part in parts(&target).into_iter().rev() {
                    todo.push_front(part);
                }
            }
            Ok(_) => reached = next,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => reached = next,
            Err(source) => return Err(PathError::Io { given: given.to_owned(), source }),
        }
    }
    Ok(reached)
}

/// The names of a path, without its root and its single dots.
fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_workspace_that_was_deleted_is_said_to_be_gone() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("project");
        fs::create_dir(&root).unwrap();
        let workspace = Workspace::new(&root).unwrap();
        fs::remove_dir(&root).unwrap();
        let error = workspace.resolve("src/new.rs").unwrap_err();
        assert!(error.to_string().contains("is gone"), "{error}");
    }

    #[test]
    fn every_way_out_of_the_workspace_is_refused_and_the_rule_is_named() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("project");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir(outer.path().join("project-other")).unwrap();
        fs::write(outer.path().join("secret"), "x").unwrap();
        symlink(outer.path(), root.join("up")).unwrap();
        symlink("../secret", root.join("file")).unwrap();
        symlink("../not-there-yet", root.join("dangling")).unwrap();
        symlink("src", root.join("inner")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let workspace = Workspace::new(&root).unwrap();
        let absolute = root.join("src/new.rs").display().to_string();
        for (given, expected) in [
            ("src/new.rs", Ok("src/new.rs")),
            ("./src/../src//new.rs", Ok("src/new.rs")),
            (absolute.as_str(), Ok("src/new.rs")),
            ("inner/new.rs", Ok("src/new.rs")),
            ("inner/../a", Ok("a")),
            (".", Ok(".")),
            ("not/yet/there", Ok("not/yet/there")),
            ("up/project/src", Ok("src")),
            ("/etc/passwd", Err("outside the workspace")),
            ("../secret", Err("outside the workspace")),
            ("../project-other/x", Err("outside the workspace")),
            ("src/../../secret", Err("outside the workspace")),
            ("missing/../../secret", Err("outside the workspace")),
            ("up/secret", Err("through a symlink")),
            ("up/new/file", Err("through a symlink")),
            ("file", Err("through a symlink")),
            ("dangling", Err("through a symlink")),
            ("loop", Err("loop")),
            ("~/x", Err("`~` is not expanded")),
            ("", Err("empty")),
        ] {
            match (workspace.resolve(given), expected) {
                (Ok(got), Ok(want)) => assert_eq!(got.shown, want, "{given}"),
                (Err(got), Err(want)) => {
                    assert!(got.to_string().contains(want), "{given}: {got}");
                }
                (got, want) => panic!("{given}: got {got:?}, expected {want:?}"),
            }
        }
    }
}
