use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::*;
use crate::testing::config;
use crate::version::{Version, known_hook_events};

#[test]
fn the_hook_commands_work_with_spaces_quotes_and_other_letters_in_their_paths() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a b's \"ü\" $HOME `x` \\ *\nß;");
    std::fs::create_dir(&odd).unwrap();
    let program = odd.join("print arguments");
    std::fs::write(&program, "#!/bin/sh\nprintf '%s|' \"$@\"\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let mut config = config(folder.path(), folder.path());
    config.hook = vec![program.into(), "hook".into(), String::new().into()];
    let text = settings(&config, &odd, &["Stop"]).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let command = document["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
    let ran = Command::new("sh").arg("-c").arg(command).stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(printed, format!("hook||{}|Stop|", odd.display()));
}

#[test]
fn each_known_event_has_one_command_and_only_the_permission_hook_is_long() {
    let config = config(&PathBuf::from("/h"), &PathBuf::from("/h"));
    let events = known_hook_events(Version::new(2, 1, 332));
    let text = settings(&config, Path::new("/run/claw/x"), events).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["hooks"].as_object().unwrap().len(), events.len());
    for event in events {
        let hook = &document["hooks"][event][0]["hooks"][0];
        assert_eq!(hook["type"], "command");
        assert_eq!(hook["command"], format!("exec claw hook /run/claw/x {event}"));
        let timeout = if *event == "PermissionRequest" { 22 } else { 5 };
        assert_eq!(hook["timeout"], timeout, "{event}");
    }
    // The settings themselves hold no secret.
    assert!(!text.contains("token"));
}

#[test]
fn a_path_that_is_no_text_is_refused() {
    let mut config = config(Path::new("/h"), Path::new("/h"));
    config.hook = vec![std::os::unix::ffi::OsStringExt::from_vec(vec![b'/', 0xff])];
    assert!(settings(&config, Path::new("/run/x"), &["Stop"]).is_err());
}
