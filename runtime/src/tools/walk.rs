//! Walking the workspace for the two searches: what is ignored, what is hidden, which names match.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use globset::{ErrorKind, GlobBuilder, GlobMatcher};
use ignore::types::Types;
use ignore::{DirEntry, Walk, WalkBuilder};
use tokio_util::sync::CancellationToken;

use super::scope::Scope;
use super::workspace::Resolved;

/// A search that takes longer returns what it has.
const SEARCH_LIMIT: Duration = Duration::from_mins(1);

/// A search of files: where, and until when.
pub(super) struct Search {
    pub base: Resolved,
    cancel: CancellationToken,
    deadline: Instant,
}

/// Why a search ended before it was through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    Cancelled,
    OutOfTime,
}

impl Search {
    /// A search below `path`, or in the whole workspace.
    pub fn new(
        scope: &Scope,
        path: Option<&str>,
        cancel: CancellationToken,
    ) -> Result<Self, String> {
        let given = path.filter(|path| !path.trim().is_empty()).unwrap_or(".");
        let base = scope.resolve_readable(given).map_err(|error| error.to_string())?;
        if !base.absolute.exists() {
            return Err(format!(
                "{} does not exist; leave path out to search everywhere",
                base.shown
            ));
        }
        Ok(Self { base, cancel, deadline: Instant::now() + SEARCH_LIMIT })
    }

    /// The files below the base, sorted by path. `.gitignore` is obeyed also outside repositories;
    /// symlinks are not followed, so nothing outside the workspace is seen.
    pub fn files(&self, hidden: bool, types: Option<Types>) -> impl Iterator<Item = PathBuf> {
        let mut builder = WalkBuilder::new(&self.base.absolute);
        builder.hidden(!hidden).require_git(false).follow_links(false).sort_by_file_path(Path::cmp);
        if let Some(types) = types {
            builder.types(types);
        }
        // Nobody looks for git's own files unless the search starts there.
        builder.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
        let walk: Walk = builder.build();
        walk.flatten().filter(is_file).map(DirEntry::into_path)
    }

    /// Whether to stop, and why.
    pub fn stopped(&self) -> Option<Stopped> {
        if self.cancel.is_cancelled() {
            Some(Stopped::Cancelled)
        } else if Instant::now() >= self.deadline {
            Some(Stopped::OutOfTime)
        } else {
            None
        }
    }

    /// The path below the base, for patterns; the file's own name if the base is the file.
    pub fn below_base<'p>(&self, path: &'p Path) -> &'p Path {
        match path.strip_prefix(&self.base.absolute) {
            Ok(below) if !below.as_os_str().is_empty() => below,
            _ => path.file_name().map_or(path, Path::new),
        }
    }
}

fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

/// A file name pattern. Without a slash it matches the name in any folder, with one the path
/// below the base.
pub(super) struct NamePattern {
    matcher: GlobMatcher,
    names_only: bool,
    negated: bool,
    pattern: String,
}

impl NamePattern {
    pub fn new(pattern: &str) -> Result<Self, String> {
        let (negated, rest) = match pattern.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, pattern),
        };
        let rest = rest.strip_prefix("./").unwrap_or(rest).trim_start_matches('/');
        if rest.is_empty() {
            return Err("the pattern is empty; give a glob such as **/*.rs".to_owned());
        }
        let glob = GlobBuilder::new(rest)
            .literal_separator(true)
            .build()
            .map_err(|error| glob_error(pattern, rest, error.kind()))?;
        Ok(Self {
            matcher: glob.compile_matcher(),
            names_only: !rest.contains('/'),
            negated,
            pattern: rest.to_owned(),
        })
    }

    /// Matches a path relative to the base of the search.
    pub fn matches(&self, below: &Path) -> bool {
        let subject =
            if self.names_only { below.file_name().map_or(below, Path::new) } else { below };
        self.matcher.is_match(subject) != self.negated
    }

    /// True when the pattern itself names something hidden.
    pub fn names_hidden(&self) -> bool {
        names_hidden(&self.pattern)
    }
}

/// True when the path or pattern names a hidden file or folder.
pub(super) fn names_hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.') && part != "." && part != "..")
}

fn glob_error(whole: &str, glob: &str, kind: &ErrorKind) -> String {
    let at = match kind {
        ErrorKind::UnclosedClass => glob.rfind('['),
        ErrorKind::UnclosedAlternates => glob.rfind('{'),
        ErrorKind::UnopenedAlternates => glob.find('}'),
        ErrorKind::InvalidRange(from, to) => glob.find(&format!("{from}-{to}")),
        ErrorKind::DanglingEscape => glob.rfind('\\'),
        _ => None,
    };
    let offset = whole.len() - glob.len();
    match at {
        Some(at) => {
            let character = whole[..offset + at].chars().count() + 1;
            format!("the glob {whole} is wrong at character {character}: {kind}")
        }
        None => format!("the glob {whole} is wrong: {kind}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_without_a_slash_matches_names_in_any_folder() {
        for (pattern, path, expected) in [
            ("*.rs", "src/a/b.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/**/*.rs", "src/a/b.rs", true),
            ("./src/**", "src/a/b.rs", true),
            ("**/*.rs", "b.rs", true),
            ("*.{ts,rs}", "a/b.rs", true),
            ("!*.rs", "a/b.rs", false),
            ("!*.rs", "a/b.ts", true),
        ] {
            let matches = NamePattern::new(pattern).unwrap().matches(Path::new(path));
            assert_eq!(matches, expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn a_bad_glob_names_the_position() {
        for (pattern, expected) in [
            ("src/[ab", "wrong at character 5: unclosed character class"),
            ("é/{a,b", "wrong at character 3: unclosed alternate group"),
            ("a[z-a]", "wrong at character 3: invalid range"),
            ("", "the pattern is empty"),
        ] {
            let error = NamePattern::new(pattern).err().unwrap();
            assert!(error.contains(expected), "{pattern}: {error}");
        }
    }
}
