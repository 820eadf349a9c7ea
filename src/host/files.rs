//! Files and folders: written whole or not at all, private where they must be.

use super::users::User;
use crate::error::{Context, Result};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid};
use rustix::path::Arg;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Reads `length` bytes of a file or device from `offset` on.
///
/// # Errors
/// With the path; also where it ends before.
pub fn read_at(path: &Path, offset: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let read = || format!("read {length} bytes of {} from {offset} on", path.display());
    File::open(path).and_then(|file| file.read_exact_at(&mut bytes, offset)).or_host(read)?;
    Ok(bytes)
}

/// Writes a file of a run folder whole or not at all: beside its place, synced, renamed into it, folder synced.
///
/// # Errors
/// [`crate::error::Kind::Store`], with the path. The place then holds what it held before.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    write_beside(path, bytes, 0o644, None).or_store(|| format!("write {}", path.display()))
}

/// Same, for a file on the stack under test or in a folder of the server's user, with mode and owner: what fails there
/// is the machine's, not the run folder's.
///
/// # Errors
/// [`crate::error::Kind::Host`], with the path.
pub fn write_for(path: &Path, bytes: &[u8], mode: u32, user: &User) -> Result<()> {
    write_beside(path, bytes, mode, Some(user)).or_host(|| format!("write {}", path.display()))
}

fn write_beside(path: &Path, bytes: &[u8], mode: u32, user: Option<&User>) -> std::io::Result<()> {
    let beside = beside(path);
    // Made anew and through no symlink: the folder may belong to somebody who would have root write elsewhere.
    match fs::remove_file(&beside) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
    let written = (|| {
        file.write_all(bytes)?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        if let Some(user) = user.filter(|_| super::users::is_root()) {
            rustix::fs::fchown(&file, Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid)))?;
        }
        file.sync_all()?;
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        // The error that counts is the one above; a left-over `.part` file is removed by the next try.
        drop(fs::remove_file(&beside));
    }
    written?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// The name under which a file or folder is prepared before it is renamed into its place.
#[must_use]
pub fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.part"))
}

/// Makes the entries of a folder durable.
///
/// # Errors
/// With the path.
pub fn sync_folder(path: &Path) -> Result<()> {
    File::open(path).and_then(|folder| folder.sync_all()).or_store(|| format!("sync the folder {}", path.display()))
}

/// Makes a folder (its parents must be there) with exactly this mode.
///
/// # Errors
/// With the path; also when it is there already.
pub fn make_folder(path: &Path, mode: u32) -> Result<()> {
    fs::DirBuilder::new().mode(mode).create(path).or_host(|| format!("make the folder {}", path.display()))?;
    // The umask may have taken bits away.
    set_mode(path, mode)
}

/// Sets the permission bits.
///
/// # Errors
/// With the path.
pub fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .or_host(|| format!("set the mode of {}", path.display()))
}

/// Gives a file or folder to a user. Does nothing when we are not root (it is ours already).
///
/// # Errors
/// With the path.
pub fn give_to(path: &Path, user: &User) -> Result<()> {
    if !super::users::is_root() {
        return Ok(());
    }
    std::os::unix::fs::lchown(path, Some(user.uid), Some(user.gid))
        .or_host(|| format!("give {} to {}", path.display(), user.name))
}

/// Gives a folder and everything below it that is root's to a user. Follows no symbolic link, not even one that is put
/// there meanwhile, and leaves files with further names elsewhere alone.
///
/// # Errors
/// With the path of the folder.
pub fn give_tree_to(folder: &Path, user: &User) -> Result<()> {
    let given = open_folder(CWD, folder).and_then(|opened| {
        give_below(&opened, user)?;
        rustix::fs::fchown(&opened, Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid)))
    });
    given.or_store(|| format!("give {} to {}", folder.display(), user.name))
}

fn open_folder(at: impl AsFd, name: impl Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

fn give_below(folder: &OwnedFd, user: &User) -> rustix::io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let facts = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_folder = FileType::from_raw_mode(facts.st_mode) == FileType::Directory;
        if is_folder {
            give_below(&open_folder(folder, name)?, user)?;
        }
        if facts.st_uid == 0 && (is_folder || facts.st_nlink == 1) {
            let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
            rustix::fs::chownat(folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
    }
    Ok(())
}

/// Bytes that an unprivileged user may still write on the filesystem that holds `path`.
///
/// # Errors
/// With the path.
pub fn free_bytes(path: &Path) -> Result<u64> {
    let facts = rustix::fs::statvfs(path).or_host(|| format!("ask {} for its free space", path.display()))?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

/// The nearest folder at or above `path` that exists.
#[must_use]
pub fn nearest_existing(path: &Path) -> PathBuf {
    path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/")).to_path_buf()
}

/// A short random id of eight hex digits from the kernel.
///
/// # Errors
/// When /dev/urandom cannot be read.
pub fn random_id() -> Result<String> {
    use std::io::Read;
    let mut bytes = [0u8; 4];
    File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut bytes)).or_host(|| "read /dev/urandom".to_owned())?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_fails_leaves_the_old_file_and_no_litter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        write_whole(&path, b"one").unwrap();
        fs::create_dir(beside(&path)).unwrap();
        assert!(write_whole(&path, b"two").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }

    #[test]
    fn a_tree_is_given_away_without_what_its_links_lead_to() {
        use std::os::unix::fs::{MetadataExt, lchown, symlink};
        if !super::super::users::is_root() {
            println!("skipped: giving files away needs root");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let tree = place.path().join("tree");
        let inner = tree.join("a/b");
        fs::create_dir_all(&inner).unwrap();
        for file in [inner.join("ours"), inner.join("theirs"), place.path().join("outside"), place.path().join("twin")]
        {
            fs::write(file, "").unwrap();
        }
        lchown(inner.join("theirs"), Some(7), Some(7)).unwrap();
        symlink(place.path(), tree.join("folder-link")).unwrap();
        symlink(place.path().join("outside"), tree.join("file-link")).unwrap();
        fs::hard_link(place.path().join("twin"), tree.join("twin")).unwrap();
        give_tree_to(&tree, &User { name: "somebody".into(), uid: 65_534, gid: 65_533 }).unwrap();
        let owner = |path: PathBuf| fs::symlink_metadata(path).map(|facts| (facts.uid(), facts.gid())).unwrap();
        for ours in [tree.clone(), tree.join("a"), inner.clone(), inner.join("ours"), tree.join("file-link")] {
            assert_eq!(owner(ours.clone()), (65_534, 65_533), "{}", ours.display());
        }
        assert_eq!(owner(inner.join("theirs")), (7, 7));
        for not_ours in ["", "outside", "twin"] {
            assert_eq!(owner(place.path().join(not_ours)), (0, 0), "{not_ours}");
        }
        symlink(&tree, place.path().join("link")).unwrap();
        assert!(give_tree_to(&place.path().join("link"), &User { name: "x".into(), uid: 1, gid: 1 }).is_err());
    }

    #[test]
    fn ids_differ() {
        assert_ne!(random_id().unwrap(), random_id().unwrap());
    }
}
