//! Facts about paths. Symbolic links are followed unless a function says otherwise.

use super::files::{if_there, nearest_existing};
use super::linux;
use super::users::User;
use crate::error::{Context, Error, Result};
use rustix::fs::{Dev, RawMode};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// File type: `RegularFile`, `Directory`, `BlockDevice`, ...
pub(crate) use rustix::fs::FileType as Kind;

/// Facts from stat(2).
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathFacts {
    pub kind: Kind,
    /// Permission bits, with set-user-id, set-group-id and sticky.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub inode: u64,
    /// Number of hard links.
    pub names: u64,
    /// Id of the filesystem that holds it.
    pub filesystem: u64,
    /// Major and minor number, for a device.
    pub device: (u32, u32),
    pub bytes: u64,
    pub allocated_bytes: u64,
}

impl From<Metadata> for PathFacts {
    fn from(found: Metadata) -> PathFacts {
        PathFacts {
            kind: Kind::from_raw_mode(found.mode() as RawMode),
            mode: found.mode() & 0o7777,
            uid: found.uid(),
            gid: found.gid(),
            inode: found.ino(),
            names: found.nlink(),
            filesystem: found.dev(),
            device: (rustix::fs::major(found.rdev() as Dev), rustix::fs::minor(found.rdev() as Dev)),
            bytes: found.len(),
            // `st_blocks` counts 512 bytes whatever the filesystem's block.
            allocated_bytes: found.blocks().saturating_mul(512),
        }
    }
}

/// Facts of a path, or the kernel's error for a caller that distinguishes them.
pub(crate) fn stat(path: &Path) -> io::Result<PathFacts> {
    fs::metadata(path).map(PathFacts::from)
}

pub(crate) fn look_at(path: &Path) -> Result<PathFacts> {
    stat(path).or_host(|| format!("stat {}", path.display()))
}

/// Facts of an open file, whatever its name leads to by now.
pub(crate) fn look_at_open(file: &File, path: &Path) -> Result<PathFacts> {
    file.metadata().map(PathFacts::from).or_host(|| format!("stat {}", path.display()))
}

/// A path that leads to an open file whatever its name is by now.
pub(super) fn of_descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Current path of an open file.
pub(crate) fn path_now(file: &File) -> Result<PathBuf> {
    fs::read_link(of_descriptor(file)).or_host(|| "read the path of an open file".to_owned())
}

/// Facts of the name itself, without following a symbolic link; `None` if there is none.
pub(crate) fn look_for(path: &Path) -> Result<Option<PathFacts>> {
    let found = if_there(fs::symlink_metadata(path)).or_host(|| format!("stat {}", path.display()))?;
    Ok(found.map(PathFacts::from))
}

/// Smallest and largest write, bytes, that a file's filesystem and device perform atomically; 0 if none. `None` if this
/// kernel does not report it (statx(2), STATX_WRITE_ATOMIC, since Linux 6.11).
///
/// # Errors
/// If the file does not exist.
pub(crate) fn atomic_write_units(path: &Path) -> Result<Option<(u32, u32)>> {
    linux::atomic_write_units(path).or_host(|| format!("look at {}", path.display()))
}

pub(crate) fn exists(path: &Path) -> bool {
    path.exists()
}

pub(crate) fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

pub(crate) fn is_disk(path: &Path) -> bool {
    path.metadata().is_ok_and(|of| of.file_type().is_block_device())
}

pub(crate) fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// The path without symbolic links.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).or_host(|| format!("resolve {}", path.display()))
}

/// The absolute path, without symbolic links and `..` in the part that exists.
///
/// # Errors
/// If `..` follows a folder that does not exist: it is unknown where that leads.
pub(crate) fn settled(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path).or_user(|| format!("find {}", path.display()))?;
    let there = nearest_existing(&path);
    let rest = path.strip_prefix(&there).unwrap_or(Path::new(""));
    if rest.components().any(|part| part == Component::ParentDir) {
        let folder = there.join(rest.components().next().unwrap_or(Component::CurDir));
        return Err(Error::user(format!("{} leads through {}, which is not there", path.display(), folder.display()))
            .hint("create that folder, or name the path without `..`"));
    }
    Ok(resolve(&there)?.components().chain(rest.components()).collect())
}

/// The path without symbolic links, or unchanged if it leads nowhere.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}
/// The first folder on the way to `path`, or to the part that exists, that its permission bits close to `user`.
pub(crate) fn closed_to(path: &Path, user: &User) -> Option<PathBuf> {
    let real = resolve(&nearest_existing(path)).ok()?;
    let mut way: Vec<&Path> = real.ancestors().collect();
    way.reverse();
    let closed = way.into_iter().find(|folder| {
        let Ok(facts) = look_at(folder) else { return false };
        let bit = match (facts.uid == user.uid, facts.gid == user.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        facts.kind == Kind::Directory && facts.mode & bit == 0
    });
    closed.map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_resolved_as_far_as_it_exists() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().canonicalize().unwrap().join("real");
        fs::create_dir_all(real.join("inner")).unwrap();
        std::os::unix::fs::symlink(real.join("inner"), place.path().join("link")).unwrap();
        let settled = |path: &str| settled(&place.path().join(path));
        assert_eq!(settled("link/../new/state").unwrap(), real.join("new/state"));
        assert_eq!(settled("real/inner/../").unwrap(), real);
        let refused = settled("real/absent/../state").unwrap_err();
        assert!(refused.to_string().contains("absent, which is not there"), "{refused}");
    }
}
