//! Files that only their owner can read: conversations hold prompts, code and command output.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Makes `path`, in a folder that is there: a workspace that was deleted must not come back as an
/// empty one. It belongs to its owner alone, also when it was there before.
pub(super) fn create_private_dir(path: &Path) -> io::Result<()> {
    if !path.is_dir() {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
    }
    restrict(path, 0o700);
    Ok(())
}

/// Opens for appending; `create` makes a new file and fails if there is one.
pub(super) fn open_append(path: &Path, create: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(create);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    if !create {
        restrict(path, 0o600);
    }
    Ok(file)
}

/// A new file that only its owner can read, for reading and writing.
pub(super) fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes a rename or a new name in `dir` survive a power cut, where the system can do that.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}

/// Takes rights of others away. Not being allowed to is no reason to stop. What a link leads to is
/// left alone: a project could have put the link there.
fn restrict(path: &Path, mode: u32) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if let Ok(metadata) = fs::symlink_metadata(path)
            && !metadata.is_symlink()
            && metadata.permissions().mode() & 0o077 != 0
        {
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode));
        }
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
}
