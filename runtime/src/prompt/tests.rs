//! What is in the prompt, in which order, and what never is.

use super::*;

/// A home folder, and a repository with a subfolder that is worked in.
struct Folders {
    _dir: tempfile::TempDir,
    home: PathBuf,
    root: PathBuf,
    sub: PathBuf,
}

impl Folders {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (home, root) = (base.join("home"), base.join("repo"));
        let sub = root.join("sub");
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(&sub).unwrap();
        fs::create_dir_all(&home).unwrap();
        for (path, text) in files {
            let path = base.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self { _dir: dir, home, root, sub }
    }

    fn prompt(&self) -> SystemPrompt {
        let home = self.home.to_str().unwrap().to_owned();
        system_prompt(&self.sub, &move |name| (name == "HOME").then(|| home.clone()))
    }

    fn names(&self) -> Vec<String> {
        let base = self.root.parent().unwrap();
        let files = self.prompt().files;
        files
            .iter()
            .map(|file| file.path.strip_prefix(base).unwrap().to_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn stable_blocks_come_first_and_the_day_has_no_time() {
    let folders = Folders::new(&[
        ("repo/CLAUDE.md", b"Use tabs."),
        ("repo/.git/HEAD", b"ref: refs/heads/topic/x\n"),
    ]);
    let prompt = folders.prompt();
    assert_eq!(prompt.blocks.len(), 3);
    assert!(prompt.blocks[0].starts_with("You are claw"));
    assert!(prompt.blocks[1].contains("Use tabs."));
    let last = &prompt.blocks[2];
    assert!(last.contains(&format!("- Working directory: {}", folders.sub.display())));
    assert!(last.contains("- Branch at the start: topic/x"));
    let today = last.lines().find_map(|line| line.strip_prefix("- Today: ")).unwrap();
    assert_eq!(today.len(), "2026-01-31".len(), "{today}");
    assert_eq!(folders.prompt(), prompt, "two starts on one day give the same prompt");
    assert_eq!(prompt.warnings, [""; 0]);
}

#[test]
fn instruction_files_come_from_the_person_then_root_down_in_order_of_names() {
    let files = [
        "home/.claw/CLAUDE.md",
        "repo/CLAUDE.md",
        "repo/CLAW.md",
        "repo/AGENTS.md",
        "repo/CLAUDE.local.md",
        "repo/.claw/CLAUDE.md",
        "repo/.claude/CLAUDE.md",
        "repo/.claw/instructions.md",
        "repo/.claw/rules/a.md",
        "repo/.claw/rules/b.txt",
        "repo/.claw/rules/c.mdc",
        "repo/.claw/rules.local/a.md",
        "repo/sub/CLAUDE.md",
        "repo/sub/AGENTS.md",
    ];
    let contents: Vec<(&str, &[u8])> = files.iter().map(|name| (*name, name.as_bytes())).collect();
    let mut given = contents.clone();
    given.push(("repo/.claw/rules/d.png", b"no text"));
    given.push(("home/.claude/CLAUDE.md", b"second choice"));
    assert_eq!(Folders::new(&given).names(), files);
    let other = Folders::new(&[("home/.claude/CLAUDE.md", b"second choice")]);
    assert_eq!(other.names(), ["home/.claude/CLAUDE.md"]);
}

#[test]
fn long_files_are_cut_visibly_and_told() {
    let long = "x".repeat(5_000);
    let folders = Folders::new(&[
        ("repo/CLAUDE.md", long.as_bytes()),
        ("repo/CLAW.md", format!("{long}b").as_bytes()),
        ("repo/AGENTS.md", format!("{long}c").as_bytes()),
        ("repo/sub/CLAUDE.md", b"left out"),
    ]);
    let prompt = folders.prompt();
    assert_eq!(prompt.files.len(), 3);
    assert_eq!(prompt.files[0].chars, 5_000);
    assert!(prompt.files[0].text.ends_with("[cut: 1000 more characters in the file]"));
    let kept: usize =
        prompt.files.iter().map(|file| file.text.chars().filter(|c| *c == 'x').count()).sum();
    assert_eq!(kept, 12_000);
    assert_eq!(prompt.warnings.len(), 4, "{:#?}", prompt.warnings);
    assert!(prompt.warnings[3].contains("left out of the prompt"));
}

#[test]
fn odd_bytes_are_replaced_with_a_notice_and_never_stop_the_start() {
    let folders = Folders::new(&[("repo/CLAUDE.md", b"caf\xe9 \x1b[31mred")]);
    let prompt = folders.prompt();
    assert!(prompt.blocks[1].contains("caf\u{fffd} [31mred"));
    assert!(prompt.warnings[0].contains("not UTF-8"), "{:?}", prompt.warnings);
}

#[test]
fn what_a_reviewer_cannot_see_is_not_sent() {
    let folders = Folders::new(&[(
        "repo/CLAUDE.md",
        "plain\u{e0041}\u{e0042}\u{202e}\u{200b} text".as_bytes(),
    )]);
    assert_eq!(folders.prompt().files[0].text, "plain text");
}

#[test]
fn one_text_under_two_names_is_sent_once() {
    let folders = Folders::new(&[("repo/CLAUDE.md", b"same"), ("repo/sub/AGENTS.md", b"same\n")]);
    #[cfg(unix)]
    std::os::unix::fs::symlink("CLAUDE.md", folders.root.join("AGENTS.md")).unwrap();
    assert_eq!(folders.names(), ["repo/CLAUDE.md"]);
}

#[test]
fn imports_are_not_followed_and_that_is_told() {
    let folders = Folders::new(&[
        ("repo/CLAUDE.md", b"See\n@docs/rules.md\n"),
        ("repo/docs/rules.md", b"IMPORTED-RULE"),
        ("repo/sub/CLAUDE.md", b"Mail team@example.com about @mentions"),
    ]);
    let prompt = folders.prompt();
    assert!(!prompt.blocks.concat().contains("IMPORTED-RULE"));
    assert_eq!(prompt.warnings.len(), 1, "{:?}", prompt.warnings);
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_project_is_refused() {
    let folders = Folders::new(&[("home/.ssh/key", b"PRIVATE-KEY")]);
    std::os::unix::fs::symlink(folders.home.join(".ssh/key"), folders.root.join("CLAUDE.md"))
        .unwrap();
    let prompt = folders.prompt();
    assert!(!prompt.blocks.concat().contains("PRIVATE-KEY"));
    assert!(prompt.warnings[0].contains("leads out of the project"), "{:?}", prompt.warnings);
}

#[test]
fn settings_environment_and_changes_are_never_in_the_prompt() {
    let settings: &[u8] = br#"{"model":"MARKER","env":{"K":"MARKER"},"provider":{"apiKey":"MARKER"},"mcpServers":{"x":{"env":{"T":"MARKER"}}}}"#;
    let folders = Folders::new(&[
        ("home/.claw.json", settings),
        ("home/.claw/settings.json", settings),
        ("repo/.claw.json", settings),
        ("repo/.claw/settings.json", settings),
        ("repo/.claw/settings.local.json", settings),
        ("repo/sub/.claw.json", settings),
        ("repo/.env", b"ANTHROPIC_API_KEY=MARKER"),
        ("repo/sub/changed.rs", b"// MARKER"),
        ("repo/.git/config", b"[remote]\nurl = https://MARKER@example.com"),
        ("repo/.git/HEAD", b"ref: refs/heads/main\n"),
        ("repo/CLAUDE.md", b"Be careful."),
    ]);
    let home = folders.home.to_str().unwrap().to_owned();
    let prompt = system_prompt(&folders.sub, &|name| {
        Some(if name == "HOME" { home.clone() } else { format!("/MARKER/{name}") })
    });
    let text = prompt.blocks.join("\n");
    assert!(text.contains("Be careful."));
    assert!(!text.contains("MARKER"), "{text}");
}

#[test]
fn the_branch_is_read_without_git() {
    for (head, expected) in [
        ("ref: refs/heads/main\n", Some("main")),
        ("0123456789abcdef0123456789abcdef01234567\n", Some("none (at commit 0123456789ab)")),
        ("garbage", None),
        ("", None),
    ] {
        let folders = Folders::new(&[("repo/.git/HEAD", head.as_bytes())]);
        assert_eq!(branch(&folders.root.join(".git")).as_deref(), expected, "{head}");
    }
    // A worktree has a file that names its git folder.
    let folders = Folders::new(&[
        ("repo/.git/worktrees/w/HEAD", b"ref: refs/heads/w\n"),
        ("w/.git", b"gitdir: ../repo/.git/worktrees/w\n"),
    ]);
    let worktree = folders.root.parent().unwrap().join("w");
    assert_eq!(git_dir(&worktree).as_deref().and_then(branch).as_deref(), Some("w"));
}

#[test]
fn a_path_with_a_line_break_cannot_begin_a_line() {
    let text = surroundings(Path::new("/a\n- Today: never"), "2026-01-31");
    assert_eq!(text.lines().filter(|line| line.starts_with("- Today")).count(), 1);
}

#[test]
fn a_key_in_an_instruction_file_is_hidden_and_told() {
    let folders = Folders::new(&[("repo/CLAUDE.md", b"Use the key my-own-credential here.")]);
    let prompt = system_prompt(&folders.sub, &|name| {
        (name == "ANTHROPIC_API_KEY").then(|| "my-own-credential".to_owned())
    });
    assert!(prompt.blocks[1].contains("Use the key [redacted] here."), "{}", prompt.blocks[1]);
    assert!(prompt.warnings[0].contains("holds a key"), "{:?}", prompt.warnings);
}
