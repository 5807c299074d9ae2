use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn check_slug(cwd: &str, expected: &str) {
    assert_eq!(slug(Path::new(cwd)), expected, "{cwd}");
}

#[test]
fn the_slug_of_a_folder() {
    check_slug("/home/user/project", "-home-user-project");
    check_slug("/home/user/my.project.v2", "-home-user-my-project-v2");
    check_slug("/home/user/my project", "-home-user-my-project");
    check_slug("/home/user/my_project", "-home-user-my-project");
    check_slug("/home/user/Überblick", "-home-user--berblick");
    check_slug("/home/user/日本", "-home-user---");
    // Two UTF-16 units.
    check_slug("/srv/🦀", "-srv---");
    check_slug("/Home/User/ProJect", "-Home-User-ProJect");
    check_slug("/home/user/project/", "-home-user-project");
    check_slug("/home/user/a--b", "-home-user-a--b");
    check_slug("/", "-");
}

#[test]
fn the_path_is_that_of_the_resolved_folder() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let real = root.join("Real Folder.d");
    fs::create_dir(&real).unwrap();
    symlink(&real, root.join("link")).unwrap();
    let config = Path::new("/config");
    let expected = config.join("projects").join(slug(&real)).join("sid.jsonl");
    for cwd in [real.clone(), root.join("link"), root.join("link/"), root.join("link/../link/.")] {
        assert_eq!(transcript_path(config, &cwd, "sid"), expected, "{}", cwd.display());
    }
}

#[test]
fn a_relative_folder_is_that_of_the_process() {
    let here = std::env::current_dir().unwrap().canonicalize().unwrap();
    let expected = Path::new("/config/projects").join(slug(&here)).join("sid.jsonl");
    assert_eq!(transcript_path(Path::new("/config"), Path::new("."), "sid"), expected);
    assert_eq!(transcript_path(Path::new("/config"), Path::new("././"), "sid"), expected);
}

#[test]
fn a_folder_that_does_not_exist_still_has_a_path() {
    let path = transcript_path(Path::new("/config"), Path::new("/no/such.place/"), "sid");
    assert_eq!(path, Path::new("/config/projects/-no-such-place/sid.jsonl"));
}

#[test]
fn sub_agents_lie_in_the_session_s_folder() {
    assert_eq!(
        agents_folder(Path::new("/c/projects/-p/0b1.jsonl")),
        Path::new("/c/projects/-p/0b1/subagents")
    );
}
