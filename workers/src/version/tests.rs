use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use super::*;
use crate::testing::{config, variables};

fn program(folder: &Path, script: &str) -> WorkerConfig {
    let path = folder.join("claude");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let mut config = config(folder, folder);
    let path = format!("{}:/usr/bin:/bin", folder.display());
    config.environment = variables(&[("PATH", &path), ("CLAUDECODE", "1")]);
    config
}

#[test]
fn a_version_is_read_from_its_own_line_only() {
    let table = [
        ("2.1.332 (Claude Code)\n", Some((2, 1, 332))),
        ("warning: old node\n2.1.197 (Claude Code)", Some((2, 1, 197))),
        ("2.2.0-beta.1 (Claude Code)", Some((2, 2, 0))),
        ("2.1 (Claude Code)", None),
        ("2.1.3.4 (Claude Code)", None),
        ("2.1.332", None),
        ("git version 2.43.0", None),
        ("", None),
    ];
    for (printed, expected) in table {
        let version = Version::parse(printed).map(|v| (v.major, v.minor, v.patch));
        assert_eq!(version, expected, "{printed:?}");
    }
}

#[test]
fn only_events_that_the_version_knows_are_registered() {
    let known = known_hook_events(Version::new(2, 1, 197));
    assert_eq!(known, known_hook_events(Version::new(2, 1, 332)));
    // Unknown to 2.1.197, where they would block the start.
    for event in ["PreModelSwitch", "PostModelSwitch", "DirectoryAdded", "PreSkillShellCommand"] {
        assert!(!known.contains(&event));
    }
    assert!(known.contains(&"StopFailure") && known.contains(&"PermissionRequest"));
    assert!(!known_hook_events(Version::new(2, 0, 50)).contains(&"StopFailure"));
}

#[tokio::test]
async fn the_program_is_found_on_the_configured_path_and_asked_once() {
    let folder = tempfile::tempdir().unwrap();
    let asked = folder.path().join("asked");
    let script =
        format!("echo \"$1 $CLAUDECODE.\" >> '{}'; echo '2.1.332 (Claude Code)'", asked.display());
    let config = program(folder.path(), &script);
    for _ in 0..2 {
        let cli = find_cli(&config).await.unwrap();
        assert_eq!(cli.program, folder.path().join("claude"));
        assert_eq!(cli.version, Version::new(2, 1, 332));
    }
    assert_eq!(std::fs::read_to_string(asked).unwrap(), "--version .\n");
}

#[tokio::test]
async fn a_missing_and_a_foreign_program_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = program(folder.path(), "echo 'sl 5.0'; echo '2.1 not it'");
    let foreign = find_cli(&config).await.unwrap_err();
    assert!(
        matches!(&foreign, WorkerError::VersionUnknown { said, .. } if said == "sl 5.0"),
        "{foreign}"
    );
    config.program = "no-such-claude".into();
    let missing = find_cli(&config).await.unwrap_err();
    assert!(matches!(missing, WorkerError::ProgramMissing { .. }));
    config.program = "./claude".into();
    assert!(find_program(&config).is_ok());
    // Not on a relative entry of PATH, which would be the project.
    config.program = "claude".into();
    config.environment = variables(&[("PATH", "::.")]);
    assert!(find_program(&config).is_err());
}

#[tokio::test]
async fn a_program_that_never_answers_is_given_up_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let script = format!("sleep 300 & echo $! > '{}.new'; mv '{0}.new' '{0}'; wait", pid.display());
    let mut config = program(folder.path(), &script);
    config.timings.version = Duration::from_millis(700);
    let since = Instant::now();
    let error = find_cli(&config).await.unwrap_err();
    assert!(matches!(error, WorkerError::VersionUnknown { .. }), "{error}");
    assert!(since.elapsed() < Duration::from_secs(20));
    let pid: i32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    let alive = || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !state.is_empty() && !state.contains(") Z ")
    };
    while alive() {
        assert!(Instant::now() < until, "the wrapper's child outlives the question");
        tokio::task::yield_now().await;
    }
}
