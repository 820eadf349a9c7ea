//! Folders: made with all above them, listed, removed with all below them.

use super::files::set_mode;
use super::users::is_root;
use crate::error::{Context, Result};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Makes a folder and those above it where they are missing; the umask takes its bits from their mode.
pub(crate) fn make_all(path: &Path, mode: u32) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(mode).create(path);
    made.or_host(|| format!("create the folder {}", path.display()))
}

/// The same, and as root with passage for everybody through each one it makes, whatever the umask: the server's user must
/// reach what lies below.
pub(crate) fn make_passable(path: &Path) -> Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    make_all(path, 0o755)?;
    for folder in missing.into_iter().filter(|folder| is_root() && !folder.as_os_str().is_empty()) {
        let mode = super::paths::look_at(folder)?.mode;
        set_mode(folder, mode | 0o111)?;
    }
    Ok(())
}

/// Paths of all that a folder holds, sorted.
pub(crate) fn list(path: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(path).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = listed.or_host(|| format!("read the folder {}", path.display()))?;
    paths.sort();
    Ok(paths)
}

/// Does something with each file of a folder and of those below it; links are followed.
pub(crate) fn each_file(path: &Path, act: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    for path in list(path)? {
        match super::paths::look_at(&path)?.kind {
            super::paths::Kind::Directory => each_file(&path, act)?,
            super::paths::Kind::RegularFile => act(&path)?,
            _ => {}
        }
    }
    Ok(())
}

/// Removes a folder that the kernel lets go with what it shows in it (configfs).
pub(crate) fn remove_empty(path: &Path) -> Result<()> {
    fs::remove_dir(path).or_host(|| format!("remove {}", path.display()))
}

pub(crate) fn remove_all(path: &Path) -> Result<()> {
    fs::remove_dir_all(path).or_host(|| format!("remove {}", path.display()))
}

/// Writes back everything of the filesystem that holds a folder.
pub(crate) fn sync_filesystem(path: &Path) -> io::Result<()> {
    super::linux::sync_filesystem(&File::open(path)?)
}

/// Renames a folder whose content is complete; both are durable afterwards.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    let above = to.parent().unwrap_or(Path::new("/"));
    let renamed =
        sync_filesystem(from).and_then(|()| fs::rename(from, to)).and_then(|()| File::open(above)?.sync_all());
    renamed.or_host(|| format!("rename {} to {}", from.display(), to.display()))
}

/// Copies a file; the copy belongs to us and must not be there yet.
pub(crate) fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(drop).or_host(|| format!("copy {} to {}", from.display(), to.display()))
}
