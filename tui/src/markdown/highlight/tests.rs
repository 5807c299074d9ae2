//! Code in, coloured lines out: later, in time, or never, but never late for a frame.

use super::*;
use crate::theme::CodeRole;

/// Colours the whole line as a name; hangs on the language "hang" and panics on "panic".
struct Fake;

impl Engine for Fake {
    fn colour(&mut self, language: &str, code: &str, line_done: &dyn Fn()) -> Option<ColouredCode> {
        match language {
            "unknown" => None,
            "hang" => loop {
                std::thread::park();
            },
            "panic" => panic!("a grammar broke"),
            _ => {
                let lines = code.lines().map(|line| {
                    line_done();
                    vec![(u32::try_from(line.len()).unwrap(), CodeRole::Name)]
                });
                Some(ColouredCode { lines: lines.collect() })
            }
        }
    }
}

struct Bench {
    highlighter: Highlighter,
    woken: Receiver<()>,
}

impl Bench {
    fn new(make_engine: MakeEngine, deadline: Duration, idle: Duration) -> Self {
        let (tell, woken) = channel();
        let wake: Wake = Arc::new(move || {
            let _ = tell.send(());
        });
        let highlighter = Highlighter::with_engine(wake, make_engine, deadline, idle);
        Self { highlighter, woken }
    }

    fn fake() -> Self {
        Self::new(|| Box::new(Fake), Duration::from_millis(50), IDLE)
    }

    fn real() -> Self {
        Self::new(|| Box::new(Grammars::load()), LINE_DEADLINE, IDLE)
    }

    /// Asks until there is an answer.
    fn settled(&mut self, language: &str, code: &str) -> Option<Arc<ColouredCode>> {
        loop {
            self.highlighter.poll();
            match self.highlighter.colours(language, code, false) {
                Colours::Ready(colours) => return Some(colours),
                Colours::Never => return None,
                Colours::Pending(_) => {
                    self.woken.recv_timeout(Duration::from_mins(1)).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_block_is_pending_first_and_coloured_when_ready() {
    let mut bench = Bench::fake();
    assert!(matches!(bench.highlighter.colours("x", "a\nb\n", false), Colours::Pending(None)));
    assert!(!bench.highlighter.known.is_empty());
    assert_eq!(bench.settled("X", "a\nb\n").unwrap().lines.len(), 2);
}

#[test]
fn a_hanging_language_stays_plain_and_the_others_go_on() {
    let mut bench = Bench::fake();
    assert!(matches!(bench.highlighter.colours("hang", "x\n", false), Colours::Pending(_)));
    assert!(bench.settled("fine", "x\n").is_some());
    assert!(bench.settled("hang", "x\n").is_none());
    assert!(bench.settled("hang", "other\n").is_none());
    assert!(bench.settled("unknown", "x\n").is_none());
    assert!(bench.settled("panic", "x\n").is_none());
    assert!(bench.settled("fine", "y\n").is_some());
}

#[test]
fn a_growing_block_is_fed_in_whole_lines() {
    let mut bench = Bench::fake();
    assert!(matches!(bench.highlighter.colours("x", "half a li\n", true), Colours::Pending(None)));
    assert!(bench.highlighter.service.is_none(), "nothing to do without a whole line");
    let grown = "one\ntwo\nthr\n";
    assert!(matches!(bench.highlighter.colours("x", grown, true), Colours::Pending(None)));
    bench.woken.recv_timeout(Duration::from_mins(1)).unwrap();
    bench.highlighter.poll();
    match bench.highlighter.colours("x", grown, true) {
        Colours::Pending(Some(colours)) => assert_eq!(colours.lines.len(), 2),
        other => panic!("{other:?}"),
    }
    // Closed, it keeps these colours until all of its lines have theirs.
    match bench.highlighter.colours("x", "one\ntwo\nthree\n", false) {
        Colours::Pending(Some(colours)) => assert_eq!(colours.lines.len(), 2),
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.settled("x", "one\ntwo\nthree\n").unwrap().lines.len(), 3);
}

#[test]
fn very_long_blocks_stay_plain() {
    let mut bench = Bench::fake();
    let long = "x\n".repeat(MOST_LINES + 1);
    assert!(matches!(bench.highlighter.colours("x", &long, false), Colours::Never));
    let wide = "x".repeat(MOST_BYTES + 1);
    assert!(matches!(bench.highlighter.colours("x", &wide, false), Colours::Never));
}

#[test]
fn without_work_everything_is_dropped_and_it_comes_back() {
    use std::sync::Mutex;
    static DROPPED: Mutex<Option<Sender<()>>> = Mutex::new(None);

    struct Loaded(Fake);
    impl Engine for Loaded {
        fn colour(
            &mut self,
            language: &str,
            code: &str,
            line_done: &dyn Fn(),
        ) -> Option<ColouredCode> {
            self.0.colour(language, code, line_done)
        }
    }
    impl Drop for Loaded {
        fn drop(&mut self) {
            if let Some(tell) = &*DROPPED.lock().unwrap() {
                let _ = tell.send(());
            }
        }
    }

    let (tell, dropped) = channel();
    *DROPPED.lock().unwrap() = Some(tell);
    let idle = Duration::from_millis(20);
    let mut bench = Bench::new(|| Box::new(Loaded(Fake)), LINE_DEADLINE, idle);
    for code in ["a\n", "b\n"] {
        assert!(bench.settled("x", code).is_some());
        dropped.recv_timeout(Duration::from_mins(1)).unwrap();
    }
}

#[test]
fn old_colours_are_forgotten() {
    let mut bench = Bench::fake();
    for index in 0..60 {
        let code = format!("{index}\n").repeat(MOST_LINES);
        assert!(bench.settled("x", &code).is_some());
    }
    assert!(bench.highlighter.pieces <= KEPT_PIECES);
    assert!(bench.highlighter.known.len() < 60);
}

#[test]
fn lines_that_made_grammars_hang_are_coloured() {
    let mut bench = Bench::real();
    for code in ["x /*\n", "i < 0 ? (l) : ([i + 1]);\n"] {
        for language in ["javascript", "js", "jsx", "typescript"] {
            assert!(bench.settled(language, code).is_some(), "{language} {code:?}");
        }
    }
    for (language, code) in [
        ("html", "<script>\nx /*\n i < 0 ? (l) : ([i + 1]);\n</script>\n"),
        ("markdown", "```js\nx /*\n```\n"),
        ("vue", "<script>\nx /*\n</script>\n"),
    ] {
        assert!(bench.settled(language, code).is_some(), "{language} {code:?}");
    }
}

#[test]
fn a_line_is_coloured_by_what_its_pieces_are() {
    let mut bench = Bench::real();
    let rust = bench.settled("rust", "fn main() { let x = \"y\"; } // z\n").unwrap();
    let roles: Vec<CodeRole> = rust.lines[0].iter().map(|piece| piece.1).collect();
    assert_eq!(roles.first(), Some(&CodeRole::Keyword));
    assert_eq!(roles.last(), Some(&CodeRole::Comment));
    assert!(roles.contains(&CodeRole::Text) && roles.contains(&CodeRole::Name));
}

#[test]
fn usual_languages_are_known() {
    let mut bench = Bench::real();
    for language in [
        "rust",
        "rs",
        "python",
        "py",
        "sh",
        "bash",
        "shell",
        "console",
        "json",
        "yaml",
        "yml",
        "toml",
        "ts",
        "tsx",
        "typescript",
        "jsx",
        "go",
        "c",
        "cpp",
        "c++",
        "java",
        "sql",
        "html",
        "css",
        "diff",
        "dockerfile",
        "markdown",
        "zig",
        "swift",
        "kotlin",
        "ruby",
    ] {
        assert!(bench.settled(language, "x = 1\n").is_some(), "{language}");
    }
    assert!(bench.settled("no such language", "x\n").is_none());
}
