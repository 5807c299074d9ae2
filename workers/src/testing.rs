//! What several rooms' tests start from.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::{Timings, Transport, WindowSize, WorkerConfig};

/// A configuration with nothing in it but its folders.
pub(crate) fn config(home: &Path, cwd: &Path) -> WorkerConfig {
    WorkerConfig {
        program: "claude".into(),
        prefix: Vec::new(),
        arguments: Vec::new(),
        cwd: cwd.to_owned(),
        trusted: false,
        config_dir: None,
        home: home.to_owned(),
        environment: variables(&[("PATH", "/usr/bin:/bin")]),
        pass: crate::environment::DEFAULT_PASS.iter().map(|name| (*name).to_owned()).collect(),
        model: None,
        system_prompt: None,
        allowed_tools: Vec::new(),
        disallowed_tools: Vec::new(),
        permission_mode: "default".to_owned(),
        transport: Transport::Pty,
        tap: false,
        auto_compaction: false,
        idle: None,
        size: WindowSize::default(),
        hook: vec!["claw".into(), "hook".into()],
        guard: Vec::new(),
        private_root: home.join("private"),
        timings: Timings::brisk(),
    }
}

pub(crate) fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// A recorded file of the CLI.
pub(crate) fn fixture(name: &str) -> String {
    let path = fixtures().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/claude")
}

/// A folder with a path that is short enough for sockets and that only we can enter.
pub(crate) fn private_root() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("cw").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .unwrap();
    folder
}
