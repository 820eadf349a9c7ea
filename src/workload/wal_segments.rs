//! New WAL segments, made as a server makes one when there is none to recycle (`XLogFileInitInternal` and
//! `InstallXLogFileSegment`, access/transam/xlog.c): filled with zeros, synced, renamed, the folder synced.

use super::timed::Timed;
use crate::error::{Error, Result};
use crate::host::files;
use crate::host::signals::Interrupt;
use crate::host::time::{micros, now};
use crate::record::counts::Measure;
use crate::units::Bytes;
use std::path::{Path, PathBuf};

/// Zeros in one write: 128 pages, as PostgreSQL 18 does (`PG_IOV_MAX`); earlier versions write less at once.
const WRITE: usize = 1 << 20;

/// What segments are made of, and where.
pub(super) struct Segments<'a> {
    pub folder: &'a Path,
    /// Size of each (`wal_segment_size`).
    pub bytes: u64,
    pub count: u64,
    /// `wal_init_zero`; where it is off, only the last byte is written.
    pub zeros: bool,
    /// `fsync`.
    pub synced: bool,
}

/// What the measure is called.
const NAME: &str = "new WAL segment";

/// Why no further segment is made.
enum Stop {
    Full,
    Failed(Error),
}

impl Segments<'_> {
    /// Makes them one after another, times each, and removes them when all are there, so that each takes free space of its own.
    /// Without room for them all the measure is not available, and says so.
    ///
    /// # Errors
    /// The kernel's, with the path; interrupted.
    pub fn measure(&self, interrupt: &Interrupt) -> Result<Measure> {
        let mut made = Timed::new(NAME);
        let ended = (0..self.count).try_for_each(|number| {
            interrupt.check().map_err(Stop::Failed)?;
            let begun = now();
            self.one(number)?;
            made.add(self.bytes, micros(begun.elapsed()));
            Ok(())
        });
        for path in (0..self.count).flat_map(|number| self.paths(number)) {
            files::remove(&path)?;
        }
        match ended {
            Ok(()) => Ok(made.measure()),
            Err(Stop::Full) => {
                let room = Bytes(self.bytes.saturating_mul(self.count));
                let unavailable = Some(format!("no room for {} segments, {room}", self.count));
                Ok(Measure { name: NAME.to_owned(), unavailable, ..Measure::default() })
            }
            Err(Stop::Failed(e)) => Err(e),
        }
    }

    /// What a segment is called while it is filled, and then. A server that recovers from a crash removes what begins so.
    fn paths(&self, number: u64) -> [PathBuf; 2] {
        ["", ".made"].map(|end| self.folder.join(format!("xlogtemp.pgstrata-{number}{end}")))
    }

    fn one(&self, number: u64) -> std::result::Result<(), Stop> {
        let [first, path] = self.paths(number);
        let failed = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::StorageFull => Stop::Full,
            _ => {
                Stop::Failed(Error::host(e.to_string()).while_doing(format!("make the WAL segment {}", path.display())))
            }
        };
        let file = files::create_new(&first, 0o600).map_err(failed)?;
        self.fill(&file).map_err(failed)?;
        if self.synced {
            file.sync_all().map_err(failed)?;
        }
        files::move_to(&first, &path).map_err(Stop::Failed)?;
        if self.synced {
            file.sync_all().map_err(failed)?;
            files::sync_folder(self.folder).map_err(Stop::Failed)?;
        }
        Ok(())
    }

    fn fill(&self, file: &files::File) -> std::io::Result<()> {
        if !self.zeros {
            return files::write_all_at(file, &[0], self.bytes - 1);
        }
        let zeros = vec![0; WRITE];
        let mut at = 0;
        while at < self.bytes {
            let bytes = (self.bytes - at).min(WRITE as u64);
            files::write_all_at(file, &zeros[..bytes as usize], at)?;
            at += bytes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn segments_are_timed_one_by_one_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let segments = Segments { folder: folder.path(), bytes: 3 << 20, count: 2, zeros: true, synced: true };
        assert!(segments.one(7).is_ok());
        let [_, path] = segments.paths(7);
        assert_eq!(fs::read(&path).unwrap(), vec![0; 3 << 20]);
        fs::remove_file(path).unwrap();
        let made = segments.measure(&Interrupt::never()).unwrap();
        assert_eq!(made.slices.iter().map(|slice| slice.operations).collect::<Vec<_>>(), [3, 3]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn without_zeros_a_segment_has_its_length_and_no_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let segments = Segments { folder: folder.path(), bytes: 1 << 20, count: 1, zeros: false, synced: false };
        assert!(segments.one(0).is_ok());
        assert_eq!(fs::metadata(&segments.paths(0)[1]).unwrap().len(), 1 << 20);
    }

    #[test]
    fn on_a_filesystem_without_room_there_is_no_figure_and_nothing_is_left() {
        if !crate::host::users::is_root() {
            println!("skipped: mounting a small tmpfs needs root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let call = |args: &[&str]| std::process::Command::new(args[0]).args(&args[1..]).status().unwrap().success();
        let path = folder.path().to_str().unwrap();
        assert!(call(&["mount", "-t", "tmpfs", "-o", "size=5m", "none", path]));
        let segments = Segments { folder: folder.path(), bytes: 2 << 20, count: 4, zeros: true, synced: true };
        let measured = segments.measure(&Interrupt::never());
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert!(call(&["umount", path]));
        let measured = measured.unwrap();
        assert_eq!(measured.unavailable.as_deref(), Some("no room for 4 segments, 8 MiB"));
        assert_eq!((measured.done, left), (None, 0));
    }

    #[test]
    fn an_interrupt_and_a_missing_folder_end_it() {
        let interrupt = Interrupt::never();
        let gone = Path::new("/gone");
        let segments = Segments { folder: gone, bytes: 1 << 20, count: 1, zeros: true, synced: true };
        let error = segments.measure(&interrupt).unwrap_err().to_string();
        assert!(error.contains("make the WAL segment /gone/xlogtemp.pgstrata-0.made"), "{error}");
        interrupt.raise();
        assert!(segments.measure(&interrupt).is_err());
    }
}
