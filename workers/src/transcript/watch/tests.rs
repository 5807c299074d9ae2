use notify::Event;
use notify::event::{
    AccessKind, AccessMode, CreateKind, DataChange, EventKind, Flag, ModifyKind, RemoveKind,
    RenameMode,
};

use super::*;

const OPENED: EventKind = EventKind::Access(AccessKind::Open(AccessMode::Any));
const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
const MADE: EventKind = EventKind::Create(CreateKind::File);
const FOLDER_MADE: EventKind = EventKind::Create(CreateKind::Folder);
const RENAMED: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::To));
const REMOVED: EventKind = EventKind::Remove(RemoveKind::Folder);

fn check(watch: &Watch, kind: EventKind, path: &str, expected: bool) {
    let event = Event::new(kind).add_path(PathBuf::from(path));
    assert_eq!(watch.wanted.by(&event), expected, "{kind:?} of {path}");
}

#[test]
fn only_what_may_change_the_file_wakes() {
    let watch = Watch::file(Path::new("/c/projects/-p/s.jsonl"));
    for kind in [WRITTEN, MADE, RENAMED] {
        check(&watch, kind, "/c/projects/-p/s.jsonl", true);
        check(&watch, kind, "/c/projects/-p/other.jsonl", false);
    }
    for kind in [OPENED, CLOSED] {
        check(&watch, kind, "/c/projects/-p/s.jsonl", false);
        check(&watch, kind, "/c/projects/-p", false);
    }
    check(&watch, FOLDER_MADE, "/c/projects", true);
    check(&watch, FOLDER_MADE, "/c/elsewhere", false);
    check(&watch, REMOVED, "/c/projects/-p", true);
}

#[test]
fn whatever_happens_in_a_folder_wakes_who_watches_it() {
    let watch = Watch::folder(Path::new("/c/s/subagents"));
    check(&watch, WRITTEN, "/c/s/subagents/agent-a.jsonl", true);
    check(&watch, OPENED, "/c/s/subagents/agent-a.jsonl", false);
    check(&watch, FOLDER_MADE, "/c/s", true);
    check(&watch, WRITTEN, "/c/other.jsonl", false);
}

#[test]
fn events_that_were_lost_wake() {
    let watch = Watch::file(Path::new("/c/s.jsonl"));
    assert!(watch.wanted.by(&Event::new(EventKind::Other).set_flag(Flag::Rescan)));
}
