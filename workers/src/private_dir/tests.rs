use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::testing::private_root as root;

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_private_folder_is_0700_its_files_0600_and_gone_on_drop() {
    let root = root();
    let folder = PrivateDir::create(root.path()).unwrap();
    let file = folder.write("settings.json", b"{}").unwrap();
    assert_eq!((mode(folder.path()), mode(&file)), (0o700, 0o600));
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    assert!(folder.write("settings.json", b"again").is_err(), "a file is born once");
    let other = PrivateDir::create(root.path()).unwrap();
    assert_ne!(other.path(), folder.path());
    assert!(folder.path().join("hooks.sock").as_os_str().len() <= LONGEST_SOCKET);
    let path = folder.path().to_owned();
    drop(folder);
    assert!(!path.exists() && other.path().exists());
}

#[test]
fn what_dead_processes_left_is_swept_and_the_living_keep_theirs() {
    let root = root();
    let ours = PrivateDir::create(root.path()).unwrap();
    let make = |name: &str| {
        let path = root.path().join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("token"), "x").unwrap();
        path
    };
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let gone = child.id();
    child.wait().unwrap();
    let dead = make(&format!("{gone}-17-0123456789ab"));
    // The id lives again, as another process.
    let reused = make(&format!("{}-1-0123456789ab", std::process::id()));
    // Of a process that we cannot see (another container), known by its lock only.
    let locked = make(&format!("{gone}-18-0123456789ab"));
    let lock = new_file(&locked.join(LOCK)).unwrap();
    lock.lock().unwrap();
    let foreign = make("something-else");
    assert_eq!(sweep(root.path()), 2);
    assert!(!dead.exists() && !reused.exists());
    assert!(ours.path().exists() && locked.exists() && foreign.exists());
    drop(lock);
    assert_eq!(sweep(root.path()), 1);
}

#[test]
fn a_root_that_is_not_ours_alone_is_refused() {
    let root = root();
    let open = root.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o755)).unwrap();
    let link = root.path().join("link");
    symlink(root.path(), &link).unwrap();
    let file = root.path().join("file");
    std::fs::write(&file, "").unwrap();
    for (refused, why) in [(&open, "other users"), (&link, "not a folder"), (&file, "not a folder")]
    {
        let error = make_private(refused).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("XDG_RUNTIME_DIR"), "{error}");
        assert!(PrivateDir::create(refused).is_err());
    }
    assert_eq!(mode(&open), 0o755, "it is left as it was");
}

#[test]
fn a_root_of_another_user_is_refused() {
    if uid() != 0 {
        // Only root can give a folder away; everybody can look at one of root's.
        let error = check_private(Path::new("/")).unwrap_err().to_string();
        assert!(error.contains("another user"), "{error}");
        return;
    }
    let root = root();
    std::os::unix::fs::chown(root.path(), Some(12345), None).unwrap();
    let error = make_private(root.path()).unwrap_err().to_string();
    assert!(error.contains("another user"), "{error}");
    // A runtime folder that was inherited from somebody else is not used.
    let shared = Path::new("/tmp");
    assert!(root_for(Some(root.path().as_os_str()), shared).starts_with("/tmp/claw-0"));
}

#[test]
fn the_root_is_in_the_runtime_folder_or_named_after_the_user() {
    let runtime = root();
    let environment =
        vec![(OsString::from("XDG_RUNTIME_DIR"), runtime.path().as_os_str().to_owned())];
    let root = private_root(&environment).unwrap();
    assert_eq!(root, runtime.path().join("claw"));
    assert_eq!(mode(&root), 0o700);
    let fallback = Path::new("/tmp").join(format!("claw-{}", uid()));
    for unusable in ["", "relative", "/no/such/folder"] {
        assert_eq!(root_for(Some(unusable.as_ref()), Path::new("/tmp")), fallback);
    }
    let long = runtime.path().join("x".repeat(80));
    std::fs::create_dir(&long).unwrap();
    assert_eq!(root_for(Some(long.as_os_str()), Path::new("/tmp")), fallback);
}

#[test]
fn without_a_folder_all_workers_share_one_stable_scratch_folder() {
    let home = tempfile::tempdir().unwrap();
    let first = scratch_dir(home.path()).unwrap();
    std::fs::write(first.join("kept"), "").unwrap();
    assert_eq!(scratch_dir(home.path()).unwrap(), first);
    assert!(first.starts_with(home.path()) && first.join("kept").exists());
    assert_eq!(mode(&first), 0o700);
}
