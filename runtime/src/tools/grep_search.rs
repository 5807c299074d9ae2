//! `grep_search`: the content of files, by regular expression.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use ignore::types::{Types, TypesBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::row::{CallContext, Tool, blocking};
use super::scope::Scope;
use super::walk::{self, NamePattern, Search, Stopped};
use super::{Grant, ToolFacts, ToolOutcome, input};
use crate::permissions::PermissionLevel;

const DEFAULT_LIMIT: usize = 250;
/// Bytes of one result, also without a limit on entries.
const MAX_RESULT_BYTES: usize = 60_000;
/// Characters of one line: minified files have lines of a megabyte.
const MAX_LINE_CHARS: usize = 500;
/// A file that must be held whole (multiline) is searched up to this size.
const HEAP_BYTES: usize = 64 * 1024 * 1024;

pub(super) struct GrepSearch;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// Regular expression (Rust syntax). Escape literal braces and parentheses.
    pattern: String,
    /// File or folder to search in; the workspace if left out.
    #[serde(default)]
    path: Option<String>,
    /// Only files whose name or path matches this glob, such as *.rs or src/**/*.ts.
    #[serde(default)]
    glob: Option<String>,
    /// files_with_matches (paths, the default), content (lines) or count (matching lines a file).
    #[serde(default)]
    output_mode: Option<OutputMode>,
    /// Lines to show before each match; content only.
    #[serde(rename = "-B", default, deserialize_with = "input::lenient")]
    before: Option<usize>,
    /// Lines to show after each match; content only.
    #[serde(rename = "-A", default, deserialize_with = "input::lenient")]
    after: Option<usize>,
    /// Lines to show before and after each match; content only.
    #[serde(rename = "-C", alias = "context", default, deserialize_with = "input::lenient")]
    context: Option<usize>,
    /// Show line numbers; content only, on by default.
    #[serde(rename = "-n", default, deserialize_with = "input::lenient")]
    line_numbers: Option<bool>,
    /// Ignore case.
    #[serde(rename = "-i", default, deserialize_with = "input::lenient")]
    ignore_case: Option<bool>,
    /// Only files of this type, such as rust, js, py, go, java.
    #[serde(rename = "type", default)]
    file_type: Option<String>,
    /// At most this many entries (lines, files or counts); 250 if left out, 0 for all.
    #[serde(default, deserialize_with = "input::lenient")]
    head_limit: Option<usize>,
    /// Skip this many entries first, to read on.
    #[serde(default, deserialize_with = "input::lenient")]
    offset: Option<usize>,
    /// Let the pattern span lines, and let . match line ends.
    #[serde(default, deserialize_with = "input::lenient")]
    multiline: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    FilesWithMatches,
    Content,
    Count,
}

impl Tool for GrepSearch {
    type Input = Input;
    const NAME: &'static str = "grep_search";
    const ALIASES: &'static [&'static str] = &["Grep"];
    const DESCRIPTION: &'static str = "Searches the content of files of the workspace with a regular expression. By default it lists the files that match; output_mode content shows the lines. Files that .gitignore names and binary files are left out, hidden ones too unless path or glob names them. Results are sorted by path, relative to the workspace. Prefer this to grep in bash.";
    const LEVEL: PermissionLevel = PermissionLevel::ReadOnly;

    fn grant(_input: &Input) -> Grant {
        Grant { key: Self::NAME.into(), words: "searching files inside the workspace".into() }
    }

    async fn run(scope: Arc<Scope>, input: Input, call: CallContext) -> ToolOutcome {
        let cancel = call.cancel.clone();
        blocking(&call, move || grep(&scope, &input, cancel).unwrap_or_else(ToolOutcome::error))
            .await
    }
}

fn grep(scope: &Scope, input: &Input, cancel: CancellationToken) -> Result<ToolOutcome, String> {
    let regex = matcher(input)?;
    let name = input.glob.as_deref().map(NamePattern::new).transpose()?;
    let types = input.file_type.as_deref().map(types).transpose()?;
    let search = Search::new(scope, input.path.as_deref(), cancel)?;
    let hidden = name.as_ref().is_some_and(NamePattern::names_hidden)
        || walk::names_hidden(&search.base.shown);
    let mut searcher = searcher(input);
    let mut found = Found::new(input);
    for path in search.files(hidden, types) {
        if name.as_ref().is_some_and(|name| !name.matches(search.below_base(&path))) {
            continue;
        }
        found.stopped = search.stopped();
        if found.stopped.is_some() || found.full {
            break;
        }
        let mut sink = FileSink {
            shown: scope.workspace.shown(&path),
            found: &mut found,
            search: &search,
            matches: 0,
        };
        // A file that cannot be read, or vanished, is no reason to fail the search.
        let _ = searcher.search_path(&regex, &path, &mut sink);
        let (shown, matches) = (sink.shown, sink.matches);
        found.end_of_file(&shown, matches);
    }
    if found.stopped == Some(Stopped::Cancelled) {
        return Err("interrupted".to_owned());
    }
    Ok(found.report())
}

fn matcher(input: &Input) -> Result<RegexMatcher, String> {
    let multiline = input.multiline.unwrap_or(false);
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(input.ignore_case.unwrap_or(false))
        .multi_line(true)
        .crlf(!multiline)
        .dot_matches_new_line(multiline);
    if !multiline {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&input.pattern).map_err(|error| {
        let hint = if !multiline && input.pattern.contains("\\n") {
            "set multiline to match across lines"
        } else {
            "escape characters that are meant literally with \\"
        };
        // The plain engine points at the place in the pattern as it was written.
        let detail = regex::Regex::new(&input.pattern).err().map(|plain| plain.to_string());
        let detail = detail.unwrap_or_else(|| error.to_string());
        format!("the pattern is not a valid regular expression; {hint}\n{detail}")
    })
}

fn types(name: &str) -> Result<Types, String> {
    TypesBuilder::new().add_defaults().select(name).build().map_err(|_| {
        format!("the file type {name} is not known; use glob instead, such as *.{name}")
    })
}

fn searcher(input: &Input) -> Searcher {
    let shows_content = input.output_mode == Some(OutputMode::Content);
    let context = |own: Option<usize>| {
        if shows_content { own.or(input.context).unwrap_or(0) } else { 0 }
    };
    SearcherBuilder::new()
        .line_number(true)
        .before_context(context(input.before))
        .after_context(context(input.after))
        .multi_line(input.multiline.unwrap_or(false))
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(HEAP_BYTES))
        .build()
}

/// The entries found so far, within the limits.
struct Found {
    mode: OutputMode,
    numbers: bool,
    skip: usize,
    limit: usize,
    output: String,
    entries: usize,
    matches: u64,
    files: u64,
    /// More was found than the limits allow.
    full: bool,
    stopped: Option<Stopped>,
}

impl Found {
    fn new(input: &Input) -> Self {
        let limit = match input.head_limit {
            None => DEFAULT_LIMIT,
            Some(0) => usize::MAX,
            Some(limit) => limit,
        };
        Self {
            mode: input.output_mode.unwrap_or(OutputMode::FilesWithMatches),
            numbers: input.line_numbers.unwrap_or(true),
            skip: input.offset.unwrap_or(0),
            limit,
            output: String::new(),
            entries: 0,
            matches: 0,
            files: 0,
            full: false,
            stopped: None,
        }
    }

    /// Adds an entry. False when there is no room for it.
    fn add(&mut self, entry: &str) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
        } else if self.entries == self.limit || self.output.len() + entry.len() > MAX_RESULT_BYTES {
            self.full = true;
        } else {
            self.entries += 1;
            self.output.push_str(entry);
            self.output.push('\n');
        }
        !self.full
    }

    /// Adds lines of a file. Matches are joined to what they show by a colon, context by a dash.
    fn add_lines(&mut self, shown: &str, bytes: &[u8], first: Option<u64>, mark: char) -> bool {
        let text = String::from_utf8_lossy(bytes);
        for (number, line) in (first.unwrap_or(1)..).zip(text.lines()) {
            let mut entry = format!("{shown}{mark}");
            if self.numbers {
                let _ = write!(entry, "{number}{mark}");
            }
            match line.char_indices().nth(MAX_LINE_CHARS) {
                Some((cut, _)) => {
                    let _ = write!(entry, "{} [line cut]", &line[..cut]);
                }
                None => entry.push_str(line),
            }
            if !self.add(&entry) {
                return false;
            }
        }
        true
    }

    fn end_of_file(&mut self, shown: &str, matches: u64) {
        if matches == 0 {
            return;
        }
        let added = match self.mode {
            OutputMode::FilesWithMatches => self.add(shown),
            OutputMode::Count => self.add(&format!("{shown}:{matches}")),
            OutputMode::Content => true,
        };
        if added {
            self.files += 1;
            self.matches += matches;
        }
    }

    fn report(mut self) -> ToolOutcome {
        if self.entries == 0 && !self.full {
            self.output.push_str(if self.matches > 0 {
                "No more entries: offset is past the last one.\n"
            } else {
                "No matches found.\n"
            });
        }
        if self.full {
            let _ = writeln!(
                self.output,
                "[truncated after {} entries; there are more. Narrow the search, or read on with offset]",
                self.entries
            );
        }
        if self.stopped.is_some() {
            self.output.push_str("[truncated: the search took too long; give a path or a glob]\n");
        }
        let facts = ToolFacts::Matches {
            matches: self.matches,
            files: self.files,
            truncated: self.full || self.stopped.is_some(),
        };
        ToolOutcome { facts: Some(facts), ..ToolOutcome::ok(self.output) }
    }
}

/// Receives what the searcher finds in one file.
struct FileSink<'a> {
    shown: String,
    found: &'a mut Found,
    search: &'a Search,
    /// Matching lines.
    matches: u64,
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let lines = found.lines().count() as u64;
        if self.found.mode == OutputMode::Content {
            let first = found.line_number();
            if !self.found.add_lines(&self.shown, found.bytes(), first, ':') {
                // What was shown of this file still counts.
                return Ok(false);
            }
        }
        self.matches += lines;
        // Whether there is one is all that the list of files needs.
        Ok(self.found.mode != OutputMode::FilesWithMatches && self.search.stopped().is_none())
    }

    fn context(&mut self, _searcher: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        let show = *line.kind() != SinkContextKind::Other;
        Ok(!show || self.found.add_lines(&self.shown, line.bytes(), line.line_number(), '-'))
    }

    fn context_break(&mut self, _searcher: &Searcher) -> io::Result<bool> {
        Ok(self.found.add("--"))
    }
}
