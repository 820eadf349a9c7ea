//! Files and folders: written atomically, and private where they must be.

pub(crate) use super::linux::{discard, drop_cache, open_nameless as nameless, punch_hole, reserve};
use super::users::User;
use super::{linux, paths, syncs};
use crate::error::{Context, Error, Result};
use rustix::fs::{Access, AtFlags, CWD, Dir, FileType, FlockOperation, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::path::Arg;
use sha2::{Digest as _, Sha256};
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

mod within;
pub(crate) use within::{open_to_append_within, open_within, write_within};

/// An open file. Any room may read and write one; only this room opens it.
pub(crate) use std::fs::File;
/// Reads `length` bytes of a file or device at `offset`.
///
/// # Errors
/// An I/O error that names the path; also if the file ends earlier.
pub fn read_at(path: &Path, offset: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut bytes, offset));
    read.or_host(|| format!("read {length} bytes of {} at offset {offset}", path.display()))?;
    Ok(bytes)
}

/// Fills `bytes` from an open file at `offset`.
pub(crate) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(bytes, offset)
}

/// Writes `bytes` to an open file at `offset`.
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

/// The error of a write that failed, `doing` completing "failed to ..."; with advice for a full filesystem.
pub(crate) fn write_refused(e: &io::Error, doing: String, if_full: &str) -> Error {
    let error = Error::host(e.to_string()).while_doing(doing);
    if e.kind() == ErrorKind::StorageFull { error.hint(if_full) } else { error }
}

/// Drops a file's clean pages from the page cache.
pub(crate) fn forget(file: &File, path: &Path) -> Result<()> {
    drop_cache(file).or_host(|| format!("drop the cached pages of {}", path.display()))
}

/// Fills as much of `bytes` as the file has at `offset`, and returns the count.
pub(crate) fn read_up_to_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// Reads a growing file from `offset` to its current end; nothing if it is no longer than that.
///
/// # Errors
/// An I/O error that names the path.
pub(crate) fn read_from(path: &Path, offset: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(offset))?;
        file.read_to_end(&mut bytes)
    });
    read.or_host(|| format!("read {} from offset {offset}", path.display()))?;
    Ok(bytes)
}

/// Writes a file of a run folder atomically: to a temporary name, synced, renamed, folder synced.
///
/// # Errors
/// [`crate::error::Kind::Store`], with the path, which then keeps its old content.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    write_at(path, bytes, None).or_store(|| format!("write {}", path.display()))
}

/// Writes output to a path that the user named: atomically if that is a regular file or nothing yet, in place if it is
/// a device, a pipe or a link, which keep their kind.
///
/// # Errors
/// [`crate::error::Kind::Store`], with the path.
pub(crate) fn write_output(path: &Path, bytes: &[u8]) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            let written = OpenOptions::new().write(true).truncate(true).open(path);
            written.and_then(|mut file| file.write_all(bytes)).or_store(|| format!("write {}", path.display()))
        }
        _ => write_whole(path, bytes),
    }
}

/// Looks whether [`write_output`] could write there now: before something long whose result it is.
///
/// # Errors
/// [`crate::error::Kind::Store`], with the path.
pub(crate) fn check_output(path: &Path) -> Result<()> {
    let place = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Ok(found) if !found.is_file() => Ok(path),
        _ => Ok(path.parent().unwrap_or(Path::new("/"))),
    };
    let can = place.and_then(|place| Ok(rustix::fs::access(place, rustix::fs::Access::WRITE_OK)?));
    can.or_store(|| format!("write {}", path.display()))
}

/// As [`write_whole`], with mode and owner, for a file on the stack under test or in a folder of the server's user: a failure there
/// is the machine's, not the run folder's.
///
/// # Errors
/// [`crate::error::Kind::Host`], with the path.
pub(crate) fn write_for(path: &Path, bytes: &[u8], mode: u32, user: &User) -> Result<()> {
    write_at(path, bytes, Some((mode, user))).or_host(|| format!("write {}", path.display()))
}

fn write_at(path: &Path, bytes: &[u8], whose: Option<(u32, &User)>) -> io::Result<()> {
    let folder = File::open(path.parent().unwrap_or(Path::new("/")))?;
    write_beside(&folder, path.file_name().unwrap_or_default(), bytes, whose)
}

/// Writes `name` in an open folder, with the given mode and owner, or with 0644 less the umask.
fn write_beside(folder: impl AsFd, name: &OsStr, bytes: &[u8], whose: Option<(u32, &User)>) -> io::Result<()> {
    let beside = beside(Path::new(name));
    let remove = || rustix::fs::unlinkat(&folder, &beside, AtFlags::empty());
    // Always created anew and never through a symlink: the folder may belong to someone who wants root to write
    // elsewhere.
    if_there(remove().map_err(io::Error::from))?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let owners = Mode::RUSR | Mode::WUSR;
    let mode = if whose.is_some() { owners } else { owners | Mode::RGRP | Mode::ROTH };
    let mut file = File::from(rustix::fs::openat(&folder, &beside, flags, mode)?);
    let written = (|| {
        file.write_all(bytes)?;
        if let Some((mode, user)) = whose {
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            give_open(&file, user)?;
        }
        file.sync_all()?;
        rustix::fs::renameat(&folder, &beside, &folder, name).map_err(io::Error::from)
    })();
    if written.is_err() {
        // The error above is the one that counts; the next attempt removes a left-over `.part` file.
        remove().ok();
    }
    written?;
    Ok(rustix::fs::fsync(&folder)?)
}

/// Temporary name under which a file or folder is prepared before it is renamed into place.
pub fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.part"))
}

/// Makes the entries of a folder durable.
///
/// # Errors
/// An I/O error that names the path.
pub(crate) fn sync_folder(path: &Path) -> Result<()> {
    sync_named(path).or_store(|| format!("sync the folder {}", path.display()))
}

/// Syncs a file or folder by opening it by name (`fsync_fname`, storage/file/fd.c).
pub(crate) fn sync_named(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Creates a folder with exactly this mode; its parents must exist.
///
/// # Errors
/// An I/O error that names the path; also if the folder exists already.
pub fn make_folder(path: &Path, mode: u32) -> Result<()> {
    let made = fs::DirBuilder::new().mode(mode).create(path).and_then(|()| {
        // The umask may have cleared bits. Not through a link: the owner of the folder above may have put one there
        // meanwhile.
        File::from(open_folder(CWD, path)?).set_permissions(fs::Permissions::from_mode(mode))
    });
    made.or_host(|| format!("create the folder {}", path.display()))
}

pub fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .or_host(|| format!("set the mode of {}", path.display()))
}

/// Gives a file or folder to a user. Does nothing if we are not root (it is ours already).
///
/// # Errors
/// An I/O error that names the path.
pub fn give_to(path: &Path, user: &User) -> Result<()> {
    if !super::users::is_root() {
        return Ok(());
    }
    std::os::unix::fs::lchown(path, Some(user.uid), Some(user.gid))
        .or_host(|| format!("change the owner of {} to {}", path.display(), user.name))
}

/// Same, for an open file.
pub(crate) fn give_open(file: &File, user: &User) -> io::Result<()> {
    if super::users::is_root() {
        rustix::fs::fchown(file, Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid)))?;
    }
    Ok(())
}

/// Gives everything of root's in a folder, itself included, to a user. Follows no symbolic link, not even one created
/// meanwhile, and skips files with more than one name.
///
/// # Errors
/// An I/O error that names the folder.
pub(crate) fn give_tree_to(folder: &Path, user: &User) -> Result<()> {
    let given = open_folder(CWD, folder).and_then(|opened| {
        give_below(&opened, user)?;
        rustix::fs::fchown(&opened, Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid)))
    });
    given.or_store(|| format!("change the owner of {} to {}", folder.display(), user.name))
}

/// Opens a folder inside an open one, without following symbolic links.
pub(crate) fn open_folder(at: impl AsFd, name: impl Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// Opens a regular file for reading and writing, without following symbolic links, waiting for a pipe or waking a
/// device.
pub(crate) fn open_regular(path: &Path) -> Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new().read(true).write(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = opened.or_host(|| format!("open {}", path.display()))?;
    match file.metadata().or_host(|| format!("stat {}", path.display()))?.is_file() {
        true => Ok(file),
        false => Err(Error::host(format!("{} is not a regular file", path.display()))),
    }
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

/// Bytes that an unprivileged user can still write on the filesystem that holds `path`.
///
/// # Errors
/// An I/O error that names the path.
pub fn free_bytes(path: &Path) -> Result<u64> {
    Ok(free_bytes_if_limited(path)?.unwrap_or(0))
}

/// Same; `None` if the filesystem has no size (ramfs).
pub(crate) fn free_bytes_if_limited(path: &Path) -> Result<Option<u64>> {
    Ok(room(path)?.map(|room| room.free))
}

/// Space of a filesystem as df counts it: the blocks reserved for root are neither used nor free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub used: u64,
    pub free: u64,
}

/// Space of the filesystem that holds `path`; `None` if it has no size (ramfs).
pub(crate) fn room(path: &Path) -> Result<Option<Room>> {
    let facts = rustix::fs::statvfs(path).or_host(|| format!("read the free space of {}", path.display()))?;
    let [used, free] = [facts.f_blocks.saturating_sub(facts.f_bfree), facts.f_bavail]
        .map(|blocks| blocks.saturating_mul(facts.f_frsize));
    Ok((facts.f_blocks > 0).then_some(Room { used, free }))
}

/// The nearest folder at or above `path` that exists.
pub(crate) fn nearest_existing(path: &Path) -> PathBuf {
    path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/")).to_path_buf()
}

/// A random id of eight hex digits from the kernel.
///
/// # Errors
/// If /dev/urandom cannot be read.
pub fn random_id() -> Result<String> {
    let mut bytes = [0u8; 4];
    File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut bytes)).or_host(|| "read /dev/urandom".to_owned())?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// SHA-256 of some content, in hex digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).or_host(|| format!("read {}", path.display()))
}

pub(crate) fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).or_host(|| format!("read {}", path.display()))
}

/// Reads at most `most` bytes of a file that the user named; `what` completes "failed to ...".
pub(crate) fn read_given(path: &Path, most: u64, what: impl FnOnce() -> String) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)).or_user(what)?;
    Ok(bytes)
}

pub(crate) fn open(path: &Path) -> Result<File> {
    File::open(path).or_host(|| format!("open {}", path.display()))
}

/// Opens a file for reading and writing; `None` if there is none.
pub(crate) fn open_to_change(path: &Path) -> Result<Option<File>> {
    if_there(OpenOptions::new().read(true).write(true).open(path)).or_host(|| format!("open {}", path.display()))
}

/// Reopens an open file for writing past the page cache (O_DIRECT). Filesystems without O_DIRECT refuse with EINVAL.
pub(crate) fn direct(file: &File) -> io::Result<File> {
    let direct = syncs::DIRECT.ok_or(ErrorKind::Unsupported)?.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(direct).open(paths::of_descriptor(file))
}

/// Same, exclusively, for a block device: fails with EBUSY while the kernel or anyone else holds it exclusively, and
/// keeps others out as long as the file is open.
pub(crate) fn hold_direct(path: &Path) -> io::Result<Option<File>> {
    let flags = (syncs::DIRECT.ok_or(ErrorKind::Unsupported)? | OFlags::EXCL).bits().cast_signed();
    if_there(OpenOptions::new().read(true).write(true).custom_flags(flags).open(path))
}

/// Opens an existing file for overwriting; `None` if there is none.
pub(super) fn open_to_overwrite(path: &Path) -> Result<Option<File>> {
    if_there(OpenOptions::new().write(true).truncate(true).open(path)).or_host(|| format!("open {}", path.display()))
}

/// Maps ENOENT to `None`.
pub(super) fn if_there<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// Opens a file for appending, created if missing.
pub(crate) fn append_to(path: &Path) -> Result<File> {
    OpenOptions::new().create(true).append(true).open(path).or_host(|| format!("open {}", path.display()))
}

/// Opens a block device exclusively, which fails while the kernel or anyone else holds it (open(2), `O_EXCL`).
pub(crate) fn open_exclusively(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a named pipe without waiting for its writer, enlarged to `bytes` if that is allowed; `None` if there is no
/// pipe.
pub(crate) fn open_pipe(path: &Path, bytes: usize) -> Result<Option<File>> {
    let opened = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path);
    let pipe = if_there(opened).or_host(|| format!("open the pipe {}", path.display()))?;
    Ok(pipe.inspect(|pipe| linux::enlarge_pipe(pipe, bytes)))
}

/// Creates an empty file of a run folder, or truncates the existing one.
pub(crate) fn create(path: &Path) -> Result<File> {
    File::create(path).or_store(|| format!("write {}", path.display()))
}

/// Same as [`create_new`], open for reading too.
pub(crate) fn create_to_change(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
}

/// Creates a file that must not exist yet; the umask applies to `mode`.
pub(crate) fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Removes a file. False if there was none.
pub(crate) fn remove(path: &Path) -> Result<bool> {
    Ok(if_there(fs::remove_file(path)).or_host(|| format!("remove {}", path.display()))?.is_some())
}

/// Hard-links a file to a name that must not exist yet.
pub(crate) fn add_name(path: &Path, name: &Path) -> io::Result<()> {
    fs::hard_link(path, name)
}

/// Renames a file within its filesystem, replacing what has the new name.
pub(crate) fn rename(path: &Path, to: &Path) -> io::Result<()> {
    fs::rename(path, to)
}

/// Moves a file, across filesystems too; the new name must not exist yet.
pub(crate) fn move_to(path: &Path, to: &Path) -> Result<()> {
    let moved = match fs::rename(path, to) {
        Err(e) if e.kind() == ErrorKind::CrossesDevices => copy_data(path, to).and_then(|()| fs::remove_file(path)),
        moved => moved,
    };
    moved.or_store(|| format!("move {} to {}", path.display(), to.display()))
}

/// Copies a sparse file: holes are neither read nor allocated.
fn copy_data(path: &Path, to: &Path) -> io::Result<()> {
    const PIECE: u64 = 1 << 20;
    let (from, to) = (File::open(path)?, File::create(to)?);
    let facts = from.metadata()?;
    to.set_permissions(facts.permissions())?;
    to.set_len(facts.len())?;
    let mut end = 0;
    let mut bytes = Vec::new();
    loop {
        let start = match rustix::fs::seek(&from, rustix::fs::SeekFrom::Data(end)) {
            Ok(start) => start,
            // No data from here on.
            Err(Errno::NXIO) => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        end = rustix::fs::seek(&from, rustix::fs::SeekFrom::Hole(start))?;
        for at in (start..end).step_by(PIECE as usize) {
            bytes.resize((end - at).min(PIECE) as usize, 0);
            from.read_exact_at(&mut bytes, at)?;
            to.write_all_at(&bytes, at)?;
        }
    }
}

/// Creates the symbolic link `link` to `target`.
pub(crate) fn make_link(link: &Path, target: &Path) -> Result<()> {
    std::os::unix::fs::symlink(target, link).or_host(|| format!("create the link {}", link.display()))
}

/// Opens a file that the user named, to read it to its end. Process substitution by a shell (`<(zcat x.gz)`) has a
/// writer and an end; another pipe may have neither.
///
/// # Errors
/// An error with the name, also for a pipe or a device.
pub(crate) fn open_given(path: &Path, name: &str) -> Result<File> {
    let handed = ["/dev/fd", "/dev/stdin", "/proc/self/fd"].iter().any(|fd| path.starts_with(fd));
    let flags = if handed { OFlags::empty() } else { OFlags::NONBLOCK };
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = file.or_user(|| format!("open {name}"))?;
    if handed || file.metadata().or_user(|| format!("stat {name}"))?.is_file() {
        return Ok(file);
    }
    Err(Error::user(format!("{name} is a pipe or a device, which may never end"))
        .hint(format!("pass it on standard input: pgstrata import - < {name}")))
}

/// Tries to lock for half a second. After a process was killed, its child between fork and exec may hold its locks for
/// as long as it takes to enter a control group.
pub(crate) fn soon(lock: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for _ in 0..50 {
        if lock().is_ok() {
            return Ok(());
        }
        super::time::sleep(std::time::Duration::from_millis(10));
    }
    lock()
}

/// Locks an open file exclusively, without waiting, until it is closed or unlocked (flock(2)).
pub(crate) fn lock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// Same, with a shared lock.
pub(crate) fn lock_shared(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, FlockOperation::NonBlockingLockShared)?)
}

/// Unlocks the file, also for children that have inherited it.
pub(crate) fn unlock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, FlockOperation::Unlock)?)
}

/// Creates a sparse file owned by a user; it must not exist yet.
pub(crate) fn make_sparse(path: &Path, bytes: u64, user: &User) -> Result<File> {
    let made = create_new(path, 0o600).and_then(|file| file.set_len(bytes).map(|()| file));
    let file = made.or_host(|| format!("create {}", path.display()))?;
    give_to(path, user)?;
    Ok(file)
}

/// Succeeds if we can create files in a folder; else returns the kernel's reason.
pub(crate) fn may_write_in(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_keeps_the_old_file_without_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        write_whole(&path, b"one").unwrap();
        fs::create_dir(beside(&path)).unwrap();
        assert!(write_whole(&path, b"two").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }

    #[test]
    fn a_copy_has_the_data_and_the_holes() {
        use std::os::unix::fs::MetadataExt;
        const SIZE: u64 = 64 << 20;
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for pieces in [vec![], vec![(0, 5000)], vec![(4096, 3 << 20), (20 << 20, 1), (SIZE - 3, 3)]] {
            let file = File::create(&from).unwrap();
            file.set_len(SIZE).unwrap();
            for (at, length) in &pieces {
                file.write_all_at(&vec![7; *length], *at).unwrap();
            }
            copy_data(&from, &to).unwrap();
            assert!(fs::read(&to).unwrap() == fs::read(&from).unwrap(), "{pieces:?}");
            assert!(fs::metadata(&to).unwrap().blocks() * 512 < SIZE / 2, "{pieces:?}");
        }
    }

    #[test]
    fn chown_of_a_tree_does_not_follow_symlinks() {
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
