//! New WAL segments, made as a server makes one when there is none to recycle (`XLogFileInitInternal` and
//! `InstallXLogFileSegment`, access/transam/xlog.c): filled with zeros, synced, renamed, the folder synced.

use super::timed::Timed;
use crate::error::{Error, Result};
use crate::host::files;
use crate::host::signals::Interrupt;
use crate::host::time::{micros, now};
use std::path::{Path, PathBuf};

/// Zeros in one write: 128 pages (`PG_IOV_MAX`, since PostgreSQL 16).
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

impl Segments<'_> {
    /// Makes them one after another, times each, and removes them when all are there, so that each takes free space of its own.
    ///
    /// # Errors
    /// The kernel's, with the path; interrupted.
    pub fn make(&self, interrupt: &Interrupt) -> Result<Timed> {
        let mut made = Timed::new("new WAL segment");
        let mut paths = Vec::new();
        for number in 0..self.count {
            interrupt.check()?;
            let begun = now();
            paths.push(self.one(number)?);
            made.add(self.bytes, micros(begun.elapsed()));
        }
        for path in paths {
            files::remove(&path)?;
        }
        Ok(made)
    }

    fn one(&self, number: u64) -> Result<PathBuf> {
        // A server that starts removes what is called so: a leftover of a crash.
        let first = self.folder.join(format!("xlogtemp.pgstrata-{number}"));
        let path = self.folder.join(format!("xlogtemp.pgstrata-{number}.made"));
        let failed = |e: &std::io::Error| {
            let error = Error::host(e.to_string()).while_doing(format!("make the WAL segment {}", path.display()));
            match e.kind() {
                std::io::ErrorKind::StorageFull => error.hint("enlarge the stack, or reduce `fill` or the data"),
                _ => error,
            }
        };
        let file = files::create_new(&first, 0o600).map_err(|e| failed(&e))?;
        self.fill(&file).map_err(|e| failed(&e))?;
        if self.synced {
            file.sync_all().map_err(|e| failed(&e))?;
        }
        files::move_to(&first, &path)?;
        if self.synced {
            file.sync_all().map_err(|e| failed(&e))?;
            files::sync_folder(self.folder)?;
        }
        Ok(path)
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
        let path = segments.one(7).unwrap();
        assert_eq!(fs::read(&path).unwrap(), vec![0; 3 << 20]);
        fs::remove_file(path).unwrap();
        let made = segments.make(&Interrupt::never()).unwrap();
        assert_eq!(made.slices.iter().map(|slice| slice.operations).collect::<Vec<_>>(), [3, 3]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn without_zeros_a_segment_has_its_length_and_no_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let segments = Segments { folder: folder.path(), bytes: 1 << 20, count: 1, zeros: false, synced: false };
        assert_eq!(fs::metadata(segments.one(0).unwrap()).unwrap().len(), 1 << 20);
    }

    #[test]
    fn an_interrupt_and_a_missing_folder_end_it() {
        let interrupt = Interrupt::never();
        let gone = Path::new("/gone");
        let segments = Segments { folder: gone, bytes: 1 << 20, count: 1, zeros: true, synced: true };
        let error = segments.make(&interrupt).err().unwrap().to_string();
        assert!(error.contains("make the WAL segment /gone/xlogtemp.pgstrata-0.made"), "{error}");
        interrupt.raise();
        assert!(segments.make(&interrupt).is_err());
    }
}
