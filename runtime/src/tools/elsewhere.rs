//! What a call needs that another program runs under one of our tools' names. Our own tools stop at
//! the bounds of the workspace by themselves; nothing stops those of others, so what reaches beyond
//! needs everything, and a grant for the workspace never covers it.

use std::path::Path;

use serde_json::Value;

use super::row::UNREADABLE;
use super::workspace::Workspace;
use super::{Grant, Requirement, ToolCall, protected};
use crate::permissions::PermissionLevel;

/// Fields that name a file or folder, in our tools and in Claude Code's.
const PATHS: [&str; 3] = ["path", "file_path", "notebook_path"];

/// The requirement of a call that somebody else runs. `own` is that of our tool of the same name.
pub(super) fn requirement(workspace: &Workspace, call: &ToolCall, own: Requirement) -> Requirement {
    if !matches!(own.level, PermissionLevel::ReadOnly | PermissionLevel::WorkspaceWrite) {
        return own;
    }
    let input: Value = serde_json::from_str(&call.input).unwrap_or_default();
    let readable = !own.grant.key.contains(UNREADABLE);
    let Some(fields) = input.as_object().filter(|_| readable) else {
        // Our tool would refuse it; nobody knows what theirs makes of it.
        return Requirement { level: PermissionLevel::DangerFullAccess, ..own };
    };
    let mut beyond = PATHS
        .iter()
        .filter_map(|name| fields.get(*name))
        .map(|value| value.as_str().unwrap_or_default())
        .filter(|given| workspace.resolve(given).is_err());
    // A search may lead out by its pattern alone.
    let pattern = fields.get("pattern").and_then(Value::as_str);
    let pattern = pattern.filter(|pattern| call.name.contains("glob") && leads_out(pattern));
    let Some(place) = beyond.next().or(pattern) else { return own };
    Requirement {
        level: PermissionLevel::DangerFullAccess,
        always_ask: own.always_ask.or_else(|| {
            let changes = own.level == PermissionLevel::WorkspaceWrite;
            changes.then(|| protected::why_beyond(Path::new(place))).flatten()
        }),
        grant: Grant {
            key: format!("beyond:{}:{place}", call.name),
            words: format!("{} on {place}, outside the workspace", call.name),
        },
    }
}

fn leads_out(pattern: &str) -> bool {
    pattern.starts_with(['/', '~']) || pattern.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::redact::Redactor;
    use crate::tools::ToolRegistry;

    #[test]
    fn what_reaches_beyond_the_workspace_needs_everything_and_its_own_grant() {
        use PermissionLevel::{DangerFullAccess, ReadOnly, WorkspaceWrite};
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), folder.path().join("link")).unwrap();
        let tools = ToolRegistry::new(folder.path(), Redactor::from_env::<&str>([])).unwrap();
        let inside = folder.path().join("a.txt").display().to_string();
        let beyond = outside.path().join("a.txt").display().to_string();
        let needs = |name: &str, input: &str| {
            let call =
                ToolCall { id: "t".into(), name: name.into(), input: input.into(), iteration: 1 };
            tools.requirement_elsewhere(&call)
        };
        let write = |path: &str| {
            let input = serde_json::json!({"file_path": path, "content": "x"}).to_string();
            needs("write_file", &input)
        };
        for (path, level) in [
            (inside.as_str(), WorkspaceWrite),
            ("a.txt", WorkspaceWrite),
            (beyond.as_str(), DangerFullAccess),
            ("../a.txt", DangerFullAccess),
            ("link/a.txt", DangerFullAccess),
            ("~/a.txt", DangerFullAccess),
            ("/home/me/.bashrc", DangerFullAccess),
            ("", DangerFullAccess),
        ] {
            assert_eq!(write(path).level, level, "{path}");
        }
        assert_ne!(write(&beyond).grant, write(&inside).grant);
        assert_ne!(write(&beyond).grant, write("../a.txt").grant);
        assert!(write("/home/me/.bashrc").always_ask.is_some());
        assert!(write(".env").always_ask.is_some() && write(&beyond).always_ask.is_none());
        for (name, input, level) in [
            ("read_file", r#"{"file_path":"a.txt"}"#, ReadOnly),
            ("read_file", r#"{"file_path":"/etc/hostname"}"#, DangerFullAccess),
            ("glob_search", r#"{"pattern":"**/*.rs"}"#, ReadOnly),
            ("glob_search", r#"{"pattern":"/etc/*"}"#, DangerFullAccess),
            ("glob_search", r#"{"pattern":"../*"}"#, DangerFullAccess),
            ("grep_search", r#"{"pattern":"x","path":"/etc"}"#, DangerFullAccess),
            ("grep_search", r#"{"pattern":"/x"}"#, ReadOnly),
            (
                "edit_file",
                r#"{"file_path":"a.txt","old_string":"a","new_string":"b"}"#,
                WorkspaceWrite,
            ),
            ("edit_file", r#"{"file_path":"a.txt"}"#, DangerFullAccess),
            ("edit_file", "junk", DangerFullAccess),
            ("write_file", r#"{"file_path":["/etc/x"],"content":"x"}"#, DangerFullAccess),
        ] {
            assert_eq!(needs(name, input).level, level, "{name} {input}");
        }
    }
}
