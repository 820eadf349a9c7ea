//! Folders: made with all above them, listed, removed with all below them.

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

/// Paths of all that a folder holds, sorted.
pub(crate) fn list(path: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(path).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = listed.or_host(|| format!("read the folder {}", path.display()))?;
    paths.sort();
    Ok(paths)
}

pub(crate) fn remove_all(path: &Path) -> Result<()> {
    fs::remove_dir_all(path).or_host(|| format!("remove {}", path.display()))
}

/// Writes back everything of the filesystem that holds a folder.
pub(crate) fn sync_filesystem(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(path)?)?)
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
