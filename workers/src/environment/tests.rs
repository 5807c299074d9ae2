use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::*;
use crate::testing::{config, variables};

fn made(
    pairs: &[(&str, &str)],
    change: impl FnOnce(&mut WorkerConfig),
) -> BTreeMap<String, String> {
    let mut config = config(Path::new("/home/user"), Path::new("/home/user/project"));
    config.environment = variables(pairs);
    change(&mut config);
    let child = child_environment(&config, "w-1", None);
    child.into_iter().map(|(n, v)| (n.into_string().unwrap(), v.into_string().unwrap())).collect()
}

const OF_A_PARENT: &[(&str, &str)] = &[
    ("PATH", "/usr/bin:/bin"),
    ("CLAUDECODE", "1"),
    ("CLAUDE_CODE_SESSION_ID", "s"),
    ("CLAUDE_CODE_CHILD_SESSION", "1"),
    ("CLAUDE_CODE_MESSAGING_TOKEN", "secret"),
    ("CLAUDE_PROJECT_DIR", "/elsewhere"),
    ("CLAUDE_CONFIG_DIR", "/elsewhere/.claude"),
    ("claude_lower", "1"),
    ("AI_AGENT", "x"),
    ("AI_AGENT_NAME", "x"),
    ("CLAW_LOG", "debug"),
    ("CLAUDE_CODE_OAUTH_TOKEN", "login"),
    ("CLAUDE_CODE_MAX_RETRIES", "3"),
    ("ANTHROPIC_API_KEY", "key"),
    ("ANTHROPIC_BASE_URL", "https://gateway.example"),
    ("COLUMNS", "33"),
    ("TERM", "dumb"),
];

#[test]
fn a_real_child_has_nothing_of_a_parent_agent_and_keeps_its_login() {
    let mut config = config(Path::new("/home/user"), Path::new("/"));
    config.environment = variables(OF_A_PARENT);
    let child = child_environment(&config, "w-1", None);
    let printed = Command::new("env").env_clear().envs(child).output().unwrap();
    let mut lines: Vec<_> = std::str::from_utf8(&printed.stdout).unwrap().lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "ANTHROPIC_API_KEY=key",
            "ANTHROPIC_BASE_URL=https://gateway.example",
            "CLAUDE_CODE_MAX_RETRIES=3",
            "CLAUDE_CODE_OAUTH_TOKEN=login",
            "CLAW_WORKER=w-1",
            "DISABLE_AUTOUPDATER=1",
            "DISABLE_AUTO_COMPACT=1",
            "HOME=/home/user",
            "LANG=C.UTF-8",
            "PATH=/usr/bin:/bin",
            "TERM=xterm-256color",
        ]
    );
}

#[test]
fn a_login_token_reaches_the_worker_only_when_it_is_allowed() {
    let child = made(OF_A_PARENT, |config| config.pass.clear());
    assert!(!child.contains_key("CLAUDE_CODE_OAUTH_TOKEN"));
    assert!(child.contains_key("ANTHROPIC_API_KEY"));
}

#[test]
fn our_own_variables_and_the_config_folder_are_never_passed_on_by_name() {
    let pass = ["CLAW_LOG", "CLAUDE_CONFIG_DIR", "CLAUDECODE"].map(str::to_owned).to_vec();
    let child = made(OF_A_PARENT, |config| config.pass = pass);
    assert!(!child.contains_key("CLAW_LOG") && !child.contains_key("CLAUDE_CONFIG_DIR"));
    assert_eq!(child["CLAUDECODE"], "1");
}

#[test]
fn the_configuration_decides_config_folder_compaction_and_language() {
    let child = made(&[("LC_ALL", "de_DE.UTF-8"), ("LANG", "")], |config| {
        config.config_dir = Some("/home/user/.work".into());
        config.auto_compaction = true;
    });
    assert_eq!(child["CLAUDE_CONFIG_DIR"], "/home/user/.work");
    assert!(!child.contains_key("DISABLE_AUTO_COMPACT"));
    assert_eq!((child["LC_ALL"].as_str(), child["LANG"].as_str()), ("de_DE.UTF-8", ""));
}

#[test]
fn the_tap_stands_for_the_api() {
    let mut config = config(Path::new("/home/user"), Path::new("/"));
    config.environment = variables(OF_A_PARENT);
    for transport in [crate::Transport::Pty, crate::Transport::Stream] {
        config.transport = transport;
        let child = child_environment(&config, "w", Some("http://127.0.0.1:9/x"));
        assert_eq!(variable(&child, "ANTHROPIC_BASE_URL").unwrap(), "http://127.0.0.1:9/x");
        let names: std::collections::BTreeSet<_> = child.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), child.len(), "each variable once");
    }
}
