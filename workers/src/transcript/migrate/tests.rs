use super::*;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

/// Two config dirs with the transcripts of one session.
struct Accounts {
    folder: tempfile::TempDir,
    from: PathBuf,
    to: PathBuf,
}

const AGENT: &str = "session/subagents/agent-a.jsonl";

impl Accounts {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let of = |account: &str| folder.path().join(account).join("projects/-work/session.jsonl");
        let accounts = Self { from: of("a"), to: of("b"), folder };
        write(&accounts.from, "one\ntwo\n");
        write(&accounts.from.with_file_name(AGENT), "agent\n");
        accounts
    }

    fn migrate(&self) -> Result<Migrated, MigrateError> {
        migrate(&self.from, &self.to)
    }

    /// Every file and folder below an account, and what is in it.
    fn look(&self, account: &str) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.folder.path().join(account)];
        while let Some(folder) = open.pop() {
            for entry in folder.read_dir().into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path.clone());
                }
                let text = fs::read_to_string(&path).unwrap_or_else(|_| "a folder".to_owned());
                found.insert(path, text);
            }
        }
        found
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_session_comes_with_its_sub_agents_and_stays_where_it_was() {
    let accounts = Accounts::new();
    let before = accounts.look("a");
    assert_eq!(accounts.migrate().unwrap(), Migrated::Copied);
    assert_eq!(read(&accounts.to), "one\ntwo\n");
    assert_eq!(read(&accounts.to.with_file_name(AGENT)), "agent\n");
    assert_eq!(accounts.look("a"), before);
    let mode = fs::metadata(&accounts.to).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let after = accounts.look("b");
    assert_eq!(accounts.migrate().unwrap(), Migrated::Known);
    assert_eq!(accounts.look("b"), after);
}

#[test]
fn what_goes_on_from_it_is_left_alone_and_its_beginning_is_continued() {
    let accounts = Accounts::new();
    write(&accounts.to, "one\ntwo\nthree\n");
    write(&accounts.to.with_file_name(AGENT), "agent\n");
    assert_eq!(accounts.migrate().unwrap(), Migrated::Known);
    assert_eq!(read(&accounts.to), "one\ntwo\nthree\n");
    write(&accounts.to, "one\n");
    assert_eq!(accounts.migrate().unwrap(), Migrated::Copied);
    assert_eq!(read(&accounts.to), "one\ntwo\n");
}

#[test]
fn nothing_is_copied_over_something_else() {
    for other in ["session.jsonl", AGENT] {
        let accounts = Accounts::new();
        let other = accounts.to.with_file_name(other);
        write(&other, "something else\n");
        let before = accounts.look("b");
        let error = accounts.migrate().unwrap_err();
        assert!(matches!(&error, MigrateError::Differs(path) if *path == other), "{error}");
        assert_eq!(accounts.look("b"), before);
    }
    // Also nothing that is no file, wherever it leads.
    let accounts = Accounts::new();
    let elsewhere = accounts.folder.path().join("elsewhere");
    fs::create_dir_all(accounts.to.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &accounts.to).unwrap();
    assert!(matches!(accounts.migrate(), Err(MigrateError::Differs(_))));
    assert!(!elsewhere.exists());
}

#[test]
fn a_copy_that_fails_half_way_is_taken_back() {
    let accounts = Accounts::new();
    write(&accounts.to.with_file_name("session/grown.jsonl"), "be");
    write(&accounts.from.with_file_name("session/grown.jsonl"), "beginning");
    // A file where a folder is needed; which of the copies comes before it is the system's choice.
    write(&accounts.from.with_file_name("session/more/agent-b.jsonl"), "agent b");
    write(&accounts.to.with_file_name("session/more"), "in the way");
    let before = accounts.look("b");
    assert!(matches!(accounts.migrate(), Err(MigrateError::Io { .. })));
    assert_eq!(accounts.look("b"), before);

    // The last one fails: everything else was made.
    let made = |accounts: &Accounts| {
        let mut made = Made(Vec::new());
        let agent = accounts.to.with_file_name(AGENT);
        made.copy(&accounts.from.with_file_name(AGENT), &agent, None).unwrap();
        let grown = accounts.to.with_file_name("session/grown.jsonl");
        made.copy(&accounts.from.with_file_name("session/grown.jsonl"), &grown, Some(2)).unwrap();
        assert_eq!(read(&grown), "beginning");
        made.copy(&accounts.from.with_file_name("missing"), &accounts.to, None).unwrap_err();
    };
    made(&accounts);
    assert_eq!(accounts.look("b"), before);
}

#[test]
fn without_a_session_there_is_nothing_to_bring() {
    let accounts = Accounts::new();
    fs::remove_file(&accounts.from).unwrap();
    assert_eq!(accounts.migrate().unwrap(), Migrated::Nothing);
    assert!(accounts.look("b").is_empty());
}

#[test]
fn a_session_comes_to_another_file_system() {
    let shared = Path::new("/dev/shm");
    let Ok(there) = tempfile::tempdir_in(shared) else { return };
    let accounts = Accounts::new();
    let to = there.path().join("projects/-work/session.jsonl");
    assert_eq!(migrate(&accounts.from, &to).unwrap(), Migrated::Copied);
    assert_eq!(read(&to), "one\ntwo\n");
    assert_eq!(read(&to.with_file_name(AGENT)), "agent\n");
}

#[test]
fn long_files_are_compared_to_their_end() {
    let accounts = Accounts::new();
    let long = "x".repeat(3 * PIECE);
    write(&accounts.from, &format!("{long}y"));
    for (there, expected) in [
        (format!("{long}y"), Relation::Whole),
        (format!("{long}yz"), Relation::Whole),
        (long.clone(), Relation::Beginning(3 * PIECE as u64)),
        (format!("{long}z"), Relation::Other),
        (String::new(), Relation::Beginning(0)),
    ] {
        write(&accounts.to, &there);
        assert_eq!(relation(&accounts.from, &accounts.to).unwrap(), expected);
    }
}
