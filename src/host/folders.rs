//! Folders: created with their parents, listed, removed recursively.

use super::files::{if_there, open_folder, set_mode};
use super::users::{behind_sudo, is_root};
use crate::error::{Context, Error, Result};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use std::ffi::CString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Creates a folder and its missing parents; the umask applies to their mode.
pub(crate) fn make_all(path: &Path, mode: u32) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(mode).create(path);
    made.or_host(|| format!("create the folder {}", path.display()))
}

/// Same; as root, makes every folder it creates passable for everyone, whatever the umask: the server's user must reach
/// what lies below.
pub(crate) fn make_passable(path: &Path) -> Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    make_all(path, 0o755)?;
    for folder in missing.into_iter().filter(|folder| is_root() && !folder.as_os_str().is_empty()) {
        let mode = super::paths::look_at(folder)?.mode;
        set_mode(folder, mode | 0o111)?;
    }
    Ok(())
}

/// Opens a folder where nobody but root, ourselves and the user behind sudo can replace anything, in it or on the way
/// to it. Also returns its path without symbolic links.
///
/// # Errors
/// An error that names the folder that others may change.
pub(crate) fn open_trusted(path: &Path) -> Result<(OwnedFd, PathBuf)> {
    let real = fs::canonicalize(path).or_host(|| format!("resolve {}", path.display()))?;
    let trusted = [Some(0), Some(rustix::process::geteuid().as_raw()), behind_sudo().map(|user| user.uid)];
    let (mut way, mut at) = (PathBuf::new(), None);
    for part in &real {
        way.push(part);
        let opened = open_folder(at.as_ref().map_or(CWD, AsFd::as_fd), part);
        let opened = opened.or_host(|| format!("open the folder {}", way.display()))?;
        let facts = rustix::fs::fstat(&opened).or_host(|| format!("stat {}", way.display()))?;
        // With an access control list, the group bits are the most that any entry grants.
        let is_shared = facts.st_mode & 0o022 != 0;
        if !trusted.contains(&Some(facts.st_uid)) {
            return Err(Error::host(format!("{} belongs to another user (uid {})", way.display(), facts.st_uid)));
        }
        if is_shared && facts.st_mode & 0o1000 == 0 {
            return Err(Error::host(format!("other users may write to {}", way.display())));
        }
        at = Some(opened);
    }
    at.map(|folder| (folder, real)).ok_or_else(|| Error::bug("a folder without a path"))
}

/// Creates a file of ours in an open folder, for reading and writing; it must not exist yet.
pub(crate) fn create_in(folder: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// Opens a folder; the last part of the path may not be a symbolic link.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    Ok(open_folder(CWD, path)?.into())
}

/// Removes a regular file from an open folder: identified by filesystem and inode, whatever its name is by now; if
/// these are unknown, by name, provided it is empty. False if there is none.
pub(crate) fn remove_known(folder: impl AsFd, name: &str, known: Option<(u64, u64)>) -> io::Result<bool> {
    let folder = open_folder(folder, ".")?;
    let named = std::iter::once(io::Result::Ok(CString::new(name)?));
    let others = Dir::read_from(&folder)?.filter(|_| known.is_some()).map(|entry| Ok(entry?.file_name().to_owned()));
    for name in named.chain(others) {
        let name: CString = name?;
        let Ok(facts) = rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        // The types of both differ between systems.
        let is_it = known.map_or(facts.st_size == 0, |(device, inode)| {
            (i128::from(facts.st_dev), i128::from(facts.st_ino)) == (i128::from(device), i128::from(inode))
        });
        if is_it && FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile {
            rustix::fs::unlinkat(&folder, &name, AtFlags::empty())?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Sorted paths of the entries of a folder.
pub(crate) fn list(path: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(path).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = listed.or_host(|| format!("read the folder {}", path.display()))?;
    paths.sort();
    Ok(paths)
}

/// Calls `act` for each file in a folder and its subfolders, following links.
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

/// Removes a folder of configfs, which the kernel lets go together with the entries it shows in it.
pub(crate) fn remove_empty(path: &Path) -> Result<()> {
    fs::remove_dir(path).or_host(|| format!("remove {}", path.display()))
}

/// Removes a folder with all that is in it, if there is one.
pub(crate) fn remove_all(path: &Path) -> Result<()> {
    if_there(fs::remove_dir_all(path)).map(drop).or_host(|| format!("remove {}", path.display()))
}

/// Syncs the filesystem that holds a folder.
pub(crate) fn sync_filesystem(path: &Path) -> io::Result<()> {
    super::linux::sync_filesystem(&File::open(path)?)
}

/// Renames a complete folder; content and name are durable afterwards.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    let above = to.parent().unwrap_or(Path::new("/"));
    let renamed =
        sync_filesystem(from).and_then(|()| fs::rename(from, to)).and_then(|()| File::open(above)?.sync_all());
    renamed.or_host(|| format!("rename {} to {}", from.display(), to.display()))
}

/// Copies a file; the copy is ours and must not exist yet.
pub(crate) fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(drop).or_host(|| format!("copy {} to {}", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink};

    #[test]
    fn a_folder_writable_or_replaceable_by_others_is_not_trusted() {
        let place = tempfile::tempdir().unwrap();
        let below = |path: &str| place.path().join(path);
        let make = |path: &str, mode: u32, owner: Option<u32>| {
            fs::create_dir(below(path)).unwrap();
            set_mode(&below(path), mode).unwrap();
            chown(below(path), owner, owner).unwrap();
        };
        for (name, mode, is_trusted) in [
            ("ours", 0o755, true),
            ("sticky", 0o1777, true),
            ("sticky/ours", 0o700, true),
            ("open", 0o777, false),
            ("open/below", 0o755, false),
            ("of-roots-group", 0o775, false),
        ] {
            make(name, mode, None);
            assert_eq!(open_trusted(&below(name)).is_ok(), is_trusted, "{name}");
        }
        symlink(below("ours"), below("link")).unwrap();
        assert!(open_trusted(&below("link")).unwrap().1.ends_with("ours"));
        if !is_root() {
            return println!("skipped: giving folders away needs root");
        }
        make("theirs", 0o755, Some(65_534));
        make("theirs/below", 0o755, None);
        make("sticky/theirs", 0o755, Some(65_534));
        make("of-a-group", 0o775, None);
        chown(below("of-a-group"), None, Some(65_534)).unwrap();
        for name in ["theirs", "theirs/below", "sticky/theirs", "of-a-group"] {
            let said = open_trusted(&below(name)).unwrap_err().to_string();
            assert!(said.contains("belongs to another user") || said.contains("other users may write"), "{said}");
        }
    }
}
