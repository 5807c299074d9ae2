use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::testing::{config, fixture, variables};

struct Home {
    folder: tempfile::TempDir,
    project: PathBuf,
}

impl Home {
    fn new(content: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap().join("a/project");
        std::fs::create_dir_all(&project).unwrap();
        let home = Self { folder, project };
        if let Some(content) = content {
            std::fs::write(home.file(), content).unwrap();
        }
        home
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(".claude.json")
    }

    fn claude(&self) -> ClaudeFile {
        ClaudeFile::of(&config(self.folder.path(), &self.project))
    }

    fn trusting(folder: impl Fn(&Path) -> PathBuf) -> Self {
        let home = Self::new(None);
        let folder = folder(&home.project);
        let projects = json!({folder.to_str().unwrap(): {ACCEPTED: true}});
        std::fs::write(home.file(), json!({ "projects": projects }).to_string()).unwrap();
        home
    }
}

#[test]
fn a_folder_is_trusted_as_the_cli_sees_it() {
    // The folder itself, or one above it.
    let home = Home::trusting(Path::to_owned);
    assert!(home.claude().is_trusted(&home.project));
    let link = home.folder.path().join("link");
    symlink(&home.project, &link).unwrap();
    assert!(home.claude().is_trusted(&link), "the real path counts");
    let above = Home::trusting(|project| project.parent().unwrap().to_owned());
    assert!(above.claude().is_trusted(&above.project));
    // But none above the top of a git repository.
    let sub = above.project.join("sub");
    std::fs::create_dir_all(&sub).unwrap();
    std::fs::create_dir(above.project.join(".git")).unwrap();
    assert!(!above.claude().is_trusted(&above.project) && !above.claude().is_trusted(&sub));
    let top = Home::trusting(Path::to_owned);
    std::fs::create_dir_all(top.project.join("sub/.x")).unwrap();
    std::fs::create_dir(top.project.join(".git")).unwrap();
    assert!(top.claude().is_trusted(&top.project.join("sub")));
    // An entry under the link's own path is not looked at, nor is one with a slash at its end.
    let by_link = Home::trusting(|project| project.join("../link"));
    assert!(!by_link.claude().is_trusted(&by_link.project));
    let slash = Home::trusting(|project| format!("{}/", project.display()).into());
    assert!(!slash.claude().is_trusted(&slash.project));
    // No file, a broken file, no entry.
    assert!(!Home::new(None).claude().is_trusted(Path::new("/")));
    let broken = Home::new(Some("{"));
    assert!(!broken.claude().is_trusted(&broken.project));
    assert!(!home.claude().is_trusted(Path::new("/no/such/folder")));
}

#[test]
fn a_linked_work_tree_is_trusted_with_its_repository() {
    let home = Home::trusting(Path::to_owned);
    let git = home.project.join(".git/worktrees/tree");
    std::fs::create_dir_all(&git).unwrap();
    std::fs::write(git.join("commondir"), "../..\n").unwrap();
    let tree = home.folder.path().canonicalize().unwrap().join("tree");
    std::fs::create_dir_all(tree.join("sub")).unwrap();
    std::fs::write(tree.join(".git"), format!("gitdir: {}\n", git.display())).unwrap();
    assert!(home.claude().is_trusted(&tree) && home.claude().is_trusted(&tree.join("sub")));
}

#[test]
fn trust_keeps_mode_owner_other_keys_and_their_order() {
    let before =
        fixture("claude.json").replacen('{', "{\"zebra\": [1, {\"b\": 1.5, \"a\": null}],", 1);
    let home = Home::new(Some(&before));
    std::fs::set_permissions(home.file(), PermissionsExt::from_mode(0o640)).unwrap();
    let owned = home.file().metadata().unwrap();
    home.claude().trust(&home.project).unwrap();
    assert!(home.claude().is_trusted(&home.project));
    let found = home.file().metadata().unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o640);
    assert_eq!((found.uid(), found.gid()), (owned.uid(), owned.gid()));
    let after = std::fs::read_to_string(home.file()).unwrap();
    let mut expected: Value = serde_json::from_str(&before).unwrap();
    expected["projects"][home.project.to_str().unwrap()] = json!({ACCEPTED: true});
    assert_eq!(after, serde_json::to_string_pretty(&expected).unwrap());
    // Nothing to say: not a byte is written.
    let inode = found.ino();
    home.claude().trust(&home.project).unwrap();
    assert_eq!(home.file().metadata().unwrap().ino(), inode);
}

#[test]
fn the_owner_of_the_file_is_kept_when_root_writes_it() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let home = Home::new(Some("{}"));
    std::os::unix::fs::chown(home.file(), Some(1234), Some(1235)).unwrap();
    home.claude().trust(&home.project).unwrap();
    let found = home.file().metadata().unwrap();
    assert_eq!((found.uid(), found.gid()), (1234, 1235));
}

#[test]
fn a_missing_file_is_made_for_its_owner_only_and_a_link_stays_a_link() {
    let home = Home::new(None);
    home.claude().trust(&home.project).unwrap();
    assert_eq!(home.file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let document: Value = serde_json::from_slice(&std::fs::read(home.file()).unwrap()).unwrap();
    assert_eq!(document["hasCompletedOnboarding"], true);

    for target in [Some("{\"kept\": 1}"), None] {
        let linked = Home::new(None);
        let real = linked.folder.path().join("dotfiles.json");
        if let Some(content) = target {
            std::fs::write(&real, content).unwrap();
        }
        symlink("dotfiles.json", linked.file()).unwrap();
        linked.claude().trust(&linked.project).unwrap();
        assert!(linked.file().symlink_metadata().unwrap().is_symlink());
        assert!(linked.claude().is_trusted(&linked.project) && real.is_file());
    }
}

#[test]
fn the_config_folder_decides_which_file() {
    let home = Home::new(None);
    let mut config = config(home.folder.path(), &home.project);
    config.config_dir = Some(home.folder.path().join("new/.claude"));
    ClaudeFile::of(&config).trust(&home.project).unwrap();
    assert!(!home.file().exists() && home.folder.path().join("new/.claude/.claude.json").is_file());
}

#[test]
fn an_unparsable_file_is_left_byte_identical_and_said_to_be() {
    for content in
        ["", "{\"a\": 1", "// mine\n{}", "[]", "{\"projects\": []}", "{\"projects\": {\"P\": 1}}"]
    {
        let home = Home::new(None);
        let content = content.replace('P', home.project.to_str().unwrap());
        std::fs::write(home.file(), &content).unwrap();
        let error = home.claude().trust(&home.project).unwrap_err().to_string();
        assert!(error.contains("left as it is") && error.contains(".claude.json"), "{error}");
        assert_eq!(std::fs::read_to_string(home.file()).unwrap(), content);
        let names = std::fs::read_dir(home.folder.path()).unwrap().count();
        assert_eq!(names, 2, "no lock and no half file is left");
    }
}

#[test]
fn parallel_starts_lose_no_entry() {
    let home = Home::new(Some("{\"kept\": true}"));
    let folders: Vec<PathBuf> = (0..12).map(|n| home.project.join(n.to_string())).collect();
    std::thread::scope(|scope| {
        for folder in &folders {
            std::fs::create_dir(folder).unwrap();
            scope.spawn(|| home.claude().trust(folder).unwrap());
        }
    });
    let document: Value = serde_json::from_slice(&std::fs::read(home.file()).unwrap()).unwrap();
    assert_eq!(document["kept"], true);
    for folder in &folders {
        assert_eq!(document["projects"][folder.to_str().unwrap()][ACCEPTED], true);
    }
}

#[test]
fn the_clis_own_lock_is_respected_and_a_forgotten_one_taken_over() {
    let home = Home::new(Some("{}"));
    let lock = home.folder.path().join(".claude.json.lock");
    std::fs::create_dir(&lock).unwrap();
    let mut claude = home.claude();
    claude.patience = Duration::from_millis(50);
    assert!(claude.trust(&home.project).is_err());
    assert_eq!(std::fs::read_to_string(home.file()).unwrap(), "{}");
    let old = SystemTime::now() - LOCK_STALE * 2;
    File::open(&lock).unwrap().set_modified(old).unwrap();
    claude.trust(&home.project).unwrap();
    assert!(!lock.exists());
}

#[test]
fn no_file_in_the_project_is_created_or_changed() {
    let home = Home::new(None);
    std::fs::write(home.project.join(".mcp.json"), "// mine\n{").unwrap();
    let before = home.project.join(".mcp.json").metadata().unwrap().modified().unwrap();
    home.claude().trust(&home.project).unwrap();
    home.claude().is_trusted(&home.project);
    let names: Vec<_> =
        std::fs::read_dir(&home.project).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, [".mcp.json"]);
    let file = home.project.join(".mcp.json");
    assert_eq!(file.metadata().unwrap().modified().unwrap(), before);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "// mine\n{");
}

#[test]
fn a_key_is_approved_by_its_end_and_only_when_the_person_set_one() {
    let home = Home::new(Some("{\"a\": 1}"));
    let mut config = config(home.folder.path(), &home.project);
    home.claude().approve_api_key(&config).unwrap();
    assert_eq!(std::fs::read_to_string(home.file()).unwrap(), "{\"a\": 1}");
    config.environment = variables(&[("ANTHROPIC_API_KEY", "key-abcdefghijklmnopqrst")]);
    for _ in 0..2 {
        home.claude().approve_api_key(&config).unwrap();
        let document: Value = serde_json::from_slice(&std::fs::read(home.file()).unwrap()).unwrap();
        let expected = json!({"approved": ["abcdefghijklmnopqrst"], "rejected": []});
        assert_eq!(document["customApiKeyResponses"], expected);
    }
    // What the person refused stays refused.
    let refused = "{\"customApiKeyResponses\": {\"rejected\": [\"short\"]}}";
    std::fs::write(home.file(), refused).unwrap();
    config.environment = variables(&[("ANTHROPIC_API_KEY", "short")]);
    home.claude().approve_api_key(&config).unwrap();
    assert_eq!(std::fs::read_to_string(home.file()).unwrap(), refused);
}
