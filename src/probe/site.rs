//! The private folder that a probe makes inside the folder probed, with its files; removed on every way out.

use crate::error::{Context, Error, Result};
use crate::host::files;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What the private folder's name begins with; then comes an id.
pub const PREFIX: &str = "pgstrata-probe-";

/// A WAL segment as initdb sets it by default.
pub const SEGMENT_BYTES: u64 = 16 << 20;

/// Written at once when a file is filled.
const PIECE_BYTES: u64 = 1 << 20;

/// The private folder.
pub struct Site {
    parent: PathBuf,
    /// Device and inode of the folder probed: whether it is still the same at the end.
    identity: (u64, u64),
    folder: PathBuf,
    segment_bytes: u64,
    removed: bool,
}

/// What a new file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Bytes that no filesystem compresses or leaves out, the same in every probe.
    Noise,
    /// Zeroes, written.
    Zeroes,
    /// Nothing but its last byte, as the server makes a segment with `wal_init_zero = off`.
    LastByte,
    /// A hole: extended, nothing written.
    Hole,
}

impl Site {
    /// Makes the private folder in `parent`, an existing folder.
    ///
    /// # Errors
    /// When it cannot be made, with what would make it go.
    pub fn make(parent: &Path) -> Result<Site> {
        let facts = fs::metadata(parent).or_host(|| format!("look at {}", parent.display()))?;
        let folder = parent.join(format!("{PREFIX}{}", files::random_id()?));
        files::make_folder(&folder, 0o700).map_err(|e| advised(e, parent))?;
        let identity = (facts.dev(), facts.ino());
        Ok(Site { parent: parent.to_owned(), identity, folder, segment_bytes: SEGMENT_BYTES, removed: false })
    }

    /// The same with WAL segments of another size.
    pub fn with_segments_of(mut self, bytes: u64) -> Site {
        self.segment_bytes = bytes;
        self
    }

    /// Size of a WAL segment.
    pub fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Path of a file of this name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes a file of `bytes`, which must not be there, fills and syncs it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn fill(&self, name: &str, bytes: u64, fill: Fill) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.path(name))?;
        match fill {
            Fill::Noise | Fill::Zeroes => {
                let mut noise = ChaCha8Rng::seed_from_u64(1);
                let mut piece = vec![0; usize::try_from(PIECE_BYTES.min(bytes)).unwrap_or(0)];
                for _ in 0..bytes / PIECE_BYTES.min(bytes).max(1) {
                    if fill == Fill::Noise {
                        noise.fill_bytes(&mut piece);
                    }
                    file.write_all(&piece)?;
                }
            }
            Fill::LastByte => {
                use std::os::unix::fs::FileExt;
                file.write_all_at(&[0], bytes.saturating_sub(1))?;
            }
            Fill::Hole => file.set_len(bytes)?,
        }
        file.sync_all()
    }

    /// Opens a file for reading and writing, with further flags.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(&self, name: &str, flags: OFlags) -> io::Result<File> {
        open(&self.path(name), flags)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    /// Whether the folder probed is still where it was.
    pub fn is_there(&self) -> bool {
        fs::metadata(&self.parent).is_ok_and(|facts| (facts.dev(), facts.ino()) == self.identity)
            && self.folder.exists()
    }

    /// Removes the private folder.
    ///
    /// # Errors
    /// When it cannot be, with its path. One that has vanished is no error.
    pub fn close(mut self) -> Result<()> {
        self.removed = true;
        match fs::remove_dir_all(&self.folder) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                let path = self.folder.display();
                Err(Error::host(format!("{path} is left behind: {e}")).hint(format!("rm -r {path}")))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if !self.removed {
            // On the way out of an error, an interrupt or a panic: there is something worse to tell.
            drop(fs::remove_dir_all(&self.folder));
        }
    }
}

/// Private folders of earlier probes that were killed.
pub fn strays(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let ours = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(PREFIX);
    entries.flatten().filter(ours).map(|entry| entry.path()).collect()
}

/// Opens a file for reading and writing, with further flags.
///
/// # Errors
/// The kernel's.
pub fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(flags.bits().cast_signed()).open(path)
}

fn advised(error: Error, parent: &Path) -> Error {
    let text = error.to_string();
    let hint = match () {
        () if text.contains("Read-only") => {
            "it is mounted read-only; name a folder on a filesystem that can be written"
        }
        () if text.contains("No space") => "nothing is free there, not even for a folder; make room",
        () if text.contains("Permission") => "name a folder that you may write, or run as a user who may",
        () => return error,
    };
    error.hint(format!("{}: {hint}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_private_folder_is_gone_on_every_way_out() {
        let place = tempfile::tempdir().unwrap();
        let left = || strays(place.path()).len();
        let site = Site::make(place.path()).unwrap();
        site.fill("file", 3 << 20, Fill::Noise).unwrap();
        assert!(site.fill("file", 1, Fill::Zeroes).is_err(), "a file that is there is never written over");
        assert_eq!((fs::metadata(site.path("file")).unwrap().len(), left()), (3 << 20, 1));
        site.close().unwrap();
        assert_eq!(left(), 0);
        let panicked = std::panic::catch_unwind(|| {
            let _site = Site::make(place.path()).unwrap();
            panic!("on purpose");
        });
        assert!(panicked.is_err());
        assert_eq!(left(), 0);
    }

    #[test]
    fn a_folder_that_was_put_in_the_place_of_the_probed_one_is_not_it() {
        let place = tempfile::tempdir().unwrap();
        let probed = place.path().join("probed");
        fs::create_dir(&probed).unwrap();
        let site = Site::make(&probed).unwrap();
        assert!(site.is_there());
        fs::rename(&probed, place.path().join("away")).unwrap();
        fs::create_dir(&probed).unwrap();
        assert!(!site.is_there());
        site.close().unwrap();
    }

    #[test]
    fn every_filling_has_the_size_asked_for() {
        let place = tempfile::tempdir().unwrap();
        let site = Site::make(place.path()).unwrap();
        for (name, fill) in [("a", Fill::Noise), ("b", Fill::Zeroes), ("c", Fill::LastByte), ("d", Fill::Hole)] {
            site.fill(name, 2 << 20, fill).unwrap();
            assert_eq!(fs::metadata(site.path(name)).unwrap().len(), 2 << 20, "{fill:?}");
        }
    }
}
