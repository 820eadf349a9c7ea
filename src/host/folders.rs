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

/// Removes a folder that the kernel lets go with what it shows in it (configfs).
pub(crate) fn remove_empty(path: &Path) -> Result<()> {
    fs::remove_dir(path).or_host(|| format!("remove {}", path.display()))
}

pub(crate) fn remove_all(path: &Path) -> Result<()> {
    fs::remove_dir_all(path).or_host(|| format!("remove {}", path.display()))
}

/// Writes back everything of the filesystem that holds a folder.
pub(crate) fn sync_filesystem(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(path)?)?)
}
