//! The private folder, with its files, that a probe creates inside the probed folder; removed on every exit path.

use super::tape::FailedCall;
use crate::error::{Context, Error, Result};
use crate::host::files::{self, open_folder};
use crate::host::linux;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::fs::{AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, flock, mkdirat, openat, unlinkat};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Prefix of the private folder's name; an id follows.
pub(crate) const PREFIX: &str = "pgstrata-probe-";

/// initdb's default size of a WAL segment.
pub(crate) const SEGMENT_BYTES: u64 = 16 << 20;

/// Write size when filling a file.
const PIECE_BYTES: u64 = 1 << 20;

/// The private folder. Both it and its parent are held open: files created through them are also removed through them,
/// wherever the names lead meanwhile (a filesystem unmounted, a folder renamed).
pub struct ProbeSite {
    parent: PathBuf,
    parent_fd: OwnedFd,
    /// Device and inode of the probed folder, to check at the end that it is still the same.
    identity: (u64, u64),
    folder: PathBuf,
    /// Locked for the lifetime of the probe.
    folder_fd: OwnedFd,
    pub segment_bytes: u64,
    /// Files created: only these are removed.
    made: RefCell<BTreeSet<String>>,
    removed: bool,
}

/// Content of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFill {
    /// Bytes that no filesystem compresses or deduplicates, the same in every probe.
    Noise,
    /// Written zeroes.
    Zeroes,
    /// Only its last byte, as the server creates a segment with `wal_init_zero = off`.
    LastByte,
    /// A hole: extended, nothing written.
    Hole,
}

impl ProbeSite {
    /// Creates the private folder in `parent`, an existing folder.
    ///
    /// # Errors
    /// If it cannot be created, with advice.
    pub fn make(parent: &Path) -> Result<ProbeSite> {
        let facts = fs::metadata(parent).or_host(|| format!("stat {}", parent.display()))?;
        let path_only = linux::PLACE | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent_fd =
            openat(CWD, parent, path_only, Mode::empty()).or_host(|| format!("open {}", parent.display()))?;
        let name = format!("{PREFIX}{}", files::random_id()?);
        let folder = parent.join(&name);
        let made = mkdirat(&parent_fd, &name, Mode::RWXU);
        made.map_err(|e| refused(&e.into(), format!("create the folder {}", folder.display()), parent))?;
        let folder_fd = open_folder(&parent_fd, &name).inspect_err(|_| {
            unlinkat(&parent_fd, &name, AtFlags::REMOVEDIR).ok();
        });
        let folder_fd = folder_fd.or_host(|| format!("open {}", folder.display()))?;
        let owner = rustix::fs::fstat(&folder_fd).or_host(|| format!("stat {}", folder.display()))?;
        // Someone who may rename in the probed folder may have replaced this one.
        let ours = owner.st_uid == rustix::process::geteuid().as_raw() && owner.st_mode & 0o077 == 0;
        if !ours || !is_empty(&folder_fd) {
            return Err(Error::host(format!("{} is not the folder created by this probe", folder.display()))
                .hint("another process renames files in the probed folder: choose a different folder"));
        }
        // On a filesystem without locks, a live probe's folder cannot be distinguished from a dead one's.
        flock(&folder_fd, FlockOperation::NonBlockingLockExclusive).ok();
        let identity = (facts.dev(), facts.ino());
        let parent = parent.to_owned();
        let made = RefCell::default();
        let segment_bytes = SEGMENT_BYTES;
        Ok(ProbeSite { parent, parent_fd, identity, folder, folder_fd, segment_bytes, made, removed: false })
    }

    /// Path of the private folder, for messages.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates, fills and syncs a file of `bytes`, which must not exist yet.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn fill(&self, name: &str, bytes: u64, fill: FileFill) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.folder_fd, name, flags, Mode::RUSR | Mode::WUSR)?);
        self.made.borrow_mut().insert(name.to_owned());
        match fill {
            FileFill::Noise | FileFill::Zeroes => {
                let mut noise = ChaCha8Rng::seed_from_u64(1);
                let mut piece = vec![0; usize::try_from(PIECE_BYTES.min(bytes)).unwrap_or(0)];
                for _ in 0..bytes / PIECE_BYTES.min(bytes).max(1) {
                    if fill == FileFill::Noise {
                        noise.fill_bytes(&mut piece);
                    }
                    file.write_all(&piece)?;
                }
            }
            FileFill::LastByte => {
                use std::os::unix::fs::FileExt;
                file.write_all_at(&[0], bytes.saturating_sub(1))?;
            }
            FileFill::Hole => file.set_len(bytes)?,
        }
        file.sync_all()
    }

    /// Opens a file for reading and writing, with extra flags.
    ///
    /// # Errors
    /// The call that failed.
    pub fn open(&self, name: &str, flags: OFlags) -> Result<File, FailedCall> {
        let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.folder_fd, name, flags, Mode::empty()).map(File::from).map_err(FailedCall::of("open"))
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        self.made.borrow_mut().remove(name);
        Ok(unlinkat(&self.folder_fd, name, AtFlags::empty())?)
    }

    /// The error for a refusal while creating the files.
    pub fn refused(&self, error: &io::Error, doing: String) -> Error {
        refused(error, doing, &self.parent)
    }

    /// True if the probed folder is still where it was.
    pub(crate) fn is_there(&self) -> bool {
        let gone = |e: &io::Error| matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        // A filesystem that only returns errors is still there, and its errors are the result.
        let parent = fs::metadata(&self.parent);
        let same = parent.map_or_else(|e| !gone(&e), |facts| (facts.dev(), facts.ino()) == self.identity);
        same && fs::symlink_metadata(&self.folder).map_or_else(|e| !gone(&e), |_| true)
    }

    /// Removes the private folder.
    ///
    /// # Errors
    /// If it cannot be removed, with its path. If it has vanished, that is no error.
    pub fn close(mut self) -> Result<()> {
        self.removed = true;
        self.remove_all().map_err(|e| {
            let path = self.folder.display();
            Error::host(format!("{path} could not be removed: {e}")).hint(format!("rm -r {path}"))
        })
    }

    fn remove_all(&self) -> io::Result<()> {
        let gone = |e: rustix::io::Errno| if e == rustix::io::Errno::NOENT { Ok(()) } else { Err(e) };
        let names = self.made.borrow();
        let removed: Vec<_> =
            names.iter().map(|name| unlinkat(&self.folder_fd, name.as_str(), AtFlags::empty()).or_else(gone)).collect();
        let name = self.folder.file_name().unwrap_or_default();
        unlinkat(&self.parent_fd, name.as_bytes(), AtFlags::REMOVEDIR).or_else(gone)?;
        removed.into_iter().collect::<Result<(), _>>()?;
        Ok(())
    }
}

impl Drop for ProbeSite {
    fn drop(&mut self) {
        if !self.removed {
            // On the way out of an error, an interrupt or a panic, which is worth more to report.
            self.remove_all().ok();
        }
    }
}

fn is_empty(folder: &OwnedFd) -> bool {
    let ours = |name: &CStr| name == c"." || name == c"..";
    Dir::read_from(folder).is_ok_and(|mut dir| dir.all(|entry| entry.is_ok_and(|entry| ours(entry.file_name()))))
}

/// Private folders of earlier probes that were killed: nobody holds their lock.
pub(crate) fn strays(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let ours = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    let dead = ours.map(|entry| entry.path()).filter(|path| {
        let opened = open_folder(CWD, path.as_path());
        opened.is_ok_and(|fd| flock(&fd, FlockOperation::NonBlockingLockExclusive).is_ok())
    });
    dead.collect()
}

/// The filesystem's refusal, with advice.
fn refused(error: &io::Error, doing: String, parent: &Path) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => "it is mounted read-only; choose a folder on a writable filesystem",
        io::ErrorKind::StorageFull => "its filesystem is full; free some space",
        io::ErrorKind::QuotaExceeded => "your quota on its filesystem is used up",
        io::ErrorKind::PermissionDenied => "choose a folder that you can write to, or run as another user",
        _ => return Error::host(error.to_string()).while_doing(doing),
    };
    Error::host(error.to_string()).while_doing(doing).hint(format!("{}: {advice}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_private_folder_is_gone_on_every_way_out() {
        let place = tempfile::tempdir().unwrap();
        let left = || fs::read_dir(place.path()).unwrap().count();
        let site = ProbeSite::make(place.path()).unwrap();
        site.fill("file", 3 << 20, FileFill::Noise).unwrap();
        assert!(site.fill("file", 1, FileFill::Zeroes).is_err(), "a file that is there is never written over");
        assert_eq!((fs::metadata(site.folder().join("file")).unwrap().len(), left()), (3 << 20, 1));
        site.close().unwrap();
        assert_eq!(left(), 0);
        let panicked = std::panic::catch_unwind(|| {
            let _site = ProbeSite::make(place.path()).unwrap();
            panic!("on purpose");
        });
        assert!(panicked.is_err());
        assert_eq!(left(), 0);
    }

    #[test]
    fn only_the_folder_of_a_dead_probe_is_stray() {
        let place = tempfile::tempdir().unwrap();
        let site = ProbeSite::make(place.path()).unwrap();
        assert_eq!(strays(place.path()), Vec::<PathBuf>::new());
        let dead = place.path().join(format!("{PREFIX}dead"));
        fs::create_dir(&dead).unwrap();
        assert_eq!(strays(place.path()), [dead]);
        site.close().unwrap();
    }

    #[test]
    fn foreign_files_in_the_private_folder_are_kept_and_reported() {
        let place = tempfile::tempdir().unwrap();
        let site = ProbeSite::make(place.path()).unwrap();
        site.fill("ours", 1 << 20, FileFill::Hole).unwrap();
        let theirs = site.folder().join("theirs");
        fs::write(&theirs, "x").unwrap();
        // A link in place of one of our files leads nowhere.
        let victim = place.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        fs::remove_file(site.folder().join("ours")).unwrap();
        std::os::unix::fs::symlink(&victim, site.folder().join("ours")).unwrap();
        assert!(site.open("ours", OFlags::empty()).is_err());
        let error = site.close().unwrap_err().to_string();
        assert!(error.contains("could not be removed"), "{error}");
        assert!(theirs.exists() && fs::read(&victim).unwrap() == b"precious");
    }

    #[test]
    fn a_folder_swapped_in_for_the_probed_one_is_rejected() {
        let place = tempfile::tempdir().unwrap();
        let probed = place.path().join("probed");
        fs::create_dir(&probed).unwrap();
        let site = ProbeSite::make(&probed).unwrap();
        assert!(site.is_there());
        fs::rename(&probed, place.path().join("away")).unwrap();
        fs::create_dir(&probed).unwrap();
        assert!(!site.is_there());
        site.close().unwrap();
        assert_eq!(fs::read_dir(place.path().join("away")).unwrap().count(), 0, "removed wherever it is now");
    }

    #[test]
    fn every_filling_has_the_size_asked_for() {
        let place = tempfile::tempdir().unwrap();
        let site = ProbeSite::make(place.path()).unwrap();
        for (name, fill) in
            [("a", FileFill::Noise), ("b", FileFill::Zeroes), ("c", FileFill::LastByte), ("d", FileFill::Hole)]
        {
            site.fill(name, 2 << 20, fill).unwrap();
            assert_eq!(fs::metadata(site.folder().join(name)).unwrap().len(), 2 << 20, "{fill:?}");
        }
    }
}
