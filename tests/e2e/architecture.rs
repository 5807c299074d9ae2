//! The rules of the house, read from the sources: who may import whom, what may print, how large
//! things may grow. Each failure says the rule and the way out.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a file, its own tests included. Above this it does two things.
const MAX_FILE_LINES: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// One source file: its path from the root, and its lines without comments.
struct Source {
    path: String,
    lines: Vec<String>,
}

impl Source {
    /// Lines of code outside test modules, with their numbers. A test module ends its file.
    fn shipped(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.lines.iter().map(String::as_str).enumerate();
        lines.take_while(|(_, line)| line.trim() != "#[cfg(test)]").map(|(n, line)| (n + 1, line))
    }

    fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name == "tests.rs"
            || name == "testing.rs"
            || self.path.contains("/tests/")
            || self.path.starts_with("tests/e2e/")
    }
}

fn sources(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    collect(&root().join(folder), &mut found);
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

fn collect(folder: &Path, found: &mut Vec<Source>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            let without_comment = |line: &str| match line.find("//") {
                // An address in a string is not a comment.
                Some(at) if !line[..at].ends_with(':') => line[..at].to_owned(),
                _ => line.to_owned(),
            };
            found.push(Source { path: name, lines: text.lines().map(without_comment).collect() });
        }
    }
}

/// Fails for each line of shipped code that holds one of the words.
#[track_caller]
fn forbid(sources: &[Source], words: &[&str], rule: &str) {
    let mut broken = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        for (number, line) in source.shipped() {
            for word in words.iter().filter(|word| line.contains(**word)) {
                broken.push(format!("  {}:{number}: {word}", source.path));
            }
        }
    }
    assert!(broken.is_empty(), "{rule}\n{}", broken.join("\n"));
}

/// Fails when the manifest names one of these packages as a dependency that ships.
#[track_caller]
fn forbid_dependency(package: &str, names: &[&str], rule: &str) {
    let manifest = fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap();
    let shipped = manifest.split("[dev-dependencies]").next().unwrap();
    for name in names {
        let named = shipped.lines().any(|line| line.split(['.', '=', ' ']).next() == Some(name));
        assert!(!named, "{rule}\n  {package}/Cargo.toml: {name}");
    }
}

const PRINTING: [&str; 6] =
    ["println!", "print!(", "eprintln!", "eprint!(", "stdout()", "stderr()"];

#[test]
fn the_runtime_knows_no_terminal_and_prints_nothing() {
    let rule = "The runtime is the agent: no terminal, no pty, no printing, nobody above it. \
                Way out: emit a TuiEvent and let the front-end show it.";
    let foreign = ["ratatui", "crossterm", "portable_pty", "claw_workers", "claw_tui"];
    let runtime = sources("runtime/src");
    forbid(&runtime, &foreign, rule);
    forbid(&runtime, &PRINTING, rule);
    forbid_dependency(
        "runtime",
        &["ratatui", "crossterm", "portable-pty", "claw-workers", "claw-tui"],
        rule,
    );
}

#[test]
fn the_workers_know_no_screen_and_one_file_knows_the_pty() {
    let rule = "The workers drive other programs: no screen, no front-end, no printing. \
                Way out: tell it as a TuiEvent.";
    let workers = sources("workers/src");
    forbid(&workers, &["ratatui", "crossterm", "claw_tui"], rule);
    forbid(&workers, &PRINTING, rule);
    forbid_dependency("workers", &["ratatui", "crossterm", "claw-tui"], rule);
    let with_pty: Vec<_> = workers
        .iter()
        .filter(|source| source.lines.iter().any(|line| line.contains("portable_pty")))
        .map(|source| source.path.as_str())
        .collect();
    assert!(
        with_pty.len() <= 1,
        "portable-pty may be named in one file, so that it can be replaced. \
         Way out: go through that file.\n{with_pty:#?}"
    );
}

#[test]
fn the_front_end_library_touches_no_worker_no_file_and_no_process() {
    let rule = "The front-end library is state, keys and pixels. Way out: order it as an Effect \
                and do it in tui/src/bin/claw, behind the Outside trait.";
    let library: Vec<_> =
        sources("tui/src").into_iter().filter(|source| !source.path.contains("/bin/")).collect();
    let foreign =
        ["claw_workers", "portable_pty", "std::fs", "std::process", "tokio::fs", "tokio::process"];
    forbid(&library, &foreign, rule);
    forbid(&library, &PRINTING, rule);
}

#[test]
fn only_the_loop_reads_the_clock() {
    let rule = "Time is passed in, so that every test can choose it. Way out: take `now: Instant` \
                as an argument; run.rs reads the clock once for everybody.";
    let library: Vec<_> = sources("tui/src")
        .into_iter()
        .filter(|source| !source.path.contains("/bin/"))
        // The inbox turns the loop's deadline into a wait; the highlighter has a watchdog; the input
        // thread has to know whether it was put aside while it looked.
        .filter(|source| {
            ![
                "tui/src/run.rs",
                "tui/src/inbox.rs",
                "tui/src/markdown/highlight.rs",
                "tui/src/terminal/input.rs",
            ]
            .contains(&source.path.as_str())
        })
        .collect();
    forbid(&library, &["Instant::now()", "SystemTime::now()"], rule);
}

#[test]
fn the_inbox_has_one_variant_per_source() {
    let inbox = fs::read_to_string(root().join("tui/src/inbox.rs")).unwrap();
    let body = inbox.split("pub enum Inbox {").nth(1).and_then(|rest| rest.split("\n}").next());
    let variants = body
        .expect("the inbox's enum")
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()))
        .count();
    assert!(
        (1..=8).contains(&variants),
        "the inbox has {variants} variants; it has one per source, never one per feature. \
         Way out: make it a TuiEvent of the runtime, or a fact of another source."
    );
}

#[test]
fn no_file_does_two_things() {
    let mut broken = Vec::new();
    for folder in ["runtime/src", "workers/src", "tui/src", "tests"] {
        for source in sources(folder) {
            if source.lines.len() > MAX_FILE_LINES {
                broken.push(format!("  {}: {} lines", source.path, source.lines.len()));
            }
        }
    }
    assert!(
        broken.is_empty(),
        "A file has at most {MAX_FILE_LINES} lines, its tests included. Way out: split it by who \
         owns the state, or tests by subject.\n{}",
        broken.join("\n")
    );
}

#[test]
fn a_file_says_what_it_is_for() {
    let mut silent = Vec::new();
    for folder in ["runtime/src", "workers/src", "tui/src", "tests"] {
        let mut files = Vec::new();
        collect(&root().join(folder), &mut files);
        for source in files.iter().filter(|source| !source.is_test()) {
            let text = fs::read_to_string(root().join(&source.path)).unwrap();
            if !text.starts_with("//!") {
                silent.push(format!("  {}", source.path));
            }
        }
    }
    assert!(
        silent.is_empty(),
        "A file opens with `//!`: what the room is for and what it refuses to do.\n{}",
        silent.join("\n")
    );
}

#[test]
fn the_top_level_holds_only_what_the_card_names() {
    let known = ["assets", "runtime", "workers", "tui", "tests", "target"];
    let unknown: Vec<_> = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.') && !known.contains(&name.as_str()))
        .collect();
    assert!(
        unknown.is_empty(),
        "No other folder stands at the top. Way out: put it into the package it belongs to.\n{unknown:?}"
    );
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    // Put together here, so that this file does not name them either.
    let places = ["root/", "tmp/w/", "work/"].map(|place| format!("/{place}"));
    // The beginning of a path, not the middle of a longer one.
    let names_one = |line: &str| {
        places.iter().any(|place| {
            let mut starts = line.match_indices(place.as_str()).map(|(at, _)| &line[..at]);
            starts
                .any(|before| !before.ends_with(|c: char| c.is_alphanumeric() || ".~}".contains(c)))
        })
    };
    let mut broken = Vec::new();
    for folder in ["runtime", "workers", "tui", "tests", "assets", ".ci", ".config"] {
        let mut files = Vec::new();
        all_files(&root().join(folder), &mut files);
        for path in files {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            for (number, line) in text.lines().enumerate() {
                if names_one(line) {
                    broken.push(format!("  {}:{}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(
        broken.is_empty(),
        "The project names no path of a machine. Way out: a temporary folder, or a path from the root.\n{}",
        broken.join("\n")
    );
}

fn all_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            all_files(&path, found);
        } else if path.is_file() {
            found.push(path);
        }
    }
}
