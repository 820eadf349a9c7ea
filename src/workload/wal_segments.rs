//! New WAL segments, made the way a server does when it has none to recycle (`XLogFileInitInternal` and
//! `InstallXLogFileSegment`, access/transam/xlog.c): filled with zeros, synced, renamed durably. `durable_rename`
//! (storage/file/fd.c) syncs the file under its old and its new name, then the folder.

use super::timed::TimedWork;
use crate::error::{Error, Result};
use crate::host::files;
use crate::host::signals::Interrupt;
use crate::host::time::{micros, now};
use crate::host::users::User;
use crate::record::counts::Measure;
use crate::units::Bytes;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Zeros per write: 128 pages, as in PostgreSQL 18 (`PG_IOV_MAX`); earlier versions write less at once.
const WRITE: usize = 1 << 20;

pub(super) struct NewSegments<'a> {
    pub folder: &'a Path,
    /// Owner of the files.
    pub user: &'a User,
    /// Segment size (`wal_segment_size`).
    pub bytes: u64,
    pub count: u64,
    /// `wal_init_zero`; if off, only the last byte is written.
    pub zeros: bool,
    /// `fsync`.
    pub synced: bool,
    /// Bytes to leave free: a server without space for its WAL shuts down.
    pub spare: u64,
}

/// Makes the file or folder at a path durable.
type Sync<'a> = &'a mut dyn FnMut(&Path) -> std::io::Result<()>;

/// Name of the measure.
const NAME: &str = "new WAL segment";

/// Why no further segment is made.
#[derive(Debug)]
enum Stop {
    Full,
    Failed(Error),
}

/// The measure when unavailable, with the reason.
pub(super) fn unavailable(why: String) -> Measure {
    Measure { name: NAME.to_owned(), unavailable: Some(why), ..Measure::default() }
}

impl NewSegments<'_> {
    /// Makes them one after another, times each, and removes them once all exist, so that each takes free space of its
    /// own. Without space for all of them the measure is unavailable and gives the reason.
    ///
    /// # Errors
    /// The kernel's, with the path; interrupted.
    pub fn measure(&self, interrupt: &Interrupt) -> Result<Measure> {
        let all = self.bytes.saturating_mul(self.count);
        let no_room = format!("no room for {} segments, {}", self.count, Bytes(all));
        let free = files::free_bytes_if_limited(self.folder)?;
        if let Some(free) = free.filter(|free| *free < all.saturating_add(self.spare)) {
            return Ok(unavailable(match self.spare {
                0 => format!("{no_room}: {} free", Bytes(free)),
                kept => format!("{no_room}: {} free, of which {} stays for the server", Bytes(free), Bytes(kept)),
            }));
        }
        let mut made = TimedWork::new(NAME);
        let ended = (0..self.count).try_for_each(|number| {
            interrupt.check().map_err(Stop::Failed)?;
            let begun = now();
            self.one(number, &mut |path| files::sync_named(path))?;
            made.add(self.bytes, micros(begun.elapsed()));
            Ok(())
        });
        for path in (0..self.count).flat_map(|number| self.paths(number)) {
            files::remove(&path)?;
        }
        match ended {
            Ok(()) => Ok(made.measure()),
            Err(Stop::Full) => Ok(unavailable(no_room)),
            Err(Stop::Failed(e)) => Err(e),
        }
    }

    /// Name of a segment while it is filled, and its final name. A server recovering from a crash removes files with
    /// this prefix.
    fn paths(&self, number: u64) -> [PathBuf; 2] {
        ["", ".made"].map(|end| self.folder.join(format!("xlogtemp.pgstrata-{number}{end}")))
    }

    fn one(&self, number: u64, sync: Sync<'_>) -> Result<(), Stop> {
        let [first, path] = self.paths(number);
        self.make(&first, &path, sync).map_err(|e| match e.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Stop::Full,
            _ => {
                Stop::Failed(Error::host(e.to_string()).while_doing(format!("make the WAL segment {}", path.display())))
            }
        })
    }

    fn make(&self, first: &Path, path: &Path, sync: Sync<'_>) -> std::io::Result<()> {
        let mut sync = |path: &Path| if self.synced { sync(path) } else { Ok(()) };
        let file = files::create_new(first, 0o600)?;
        files::give_open(&file, self.user)?;
        self.fill(&file)?;
        sync(first)?;
        sync(first)?;
        files::rename(first, path)?;
        sync(path)?;
        sync(self.folder)
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
    use crate::host::users;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    fn of<'a>(folder: &'a Path, user: &'a User, bytes: u64, count: u64) -> NewSegments<'a> {
        NewSegments { folder, user, bytes, count, zeros: true, synced: true, spare: 0 }
    }

    /// Root; run by anyone else, the tests change no ownership.
    fn me() -> User {
        User { name: "root".to_owned(), uid: 0, gid: 0 }
    }

    #[test]
    fn segments_are_timed_one_by_one_and_removed() {
        let (folder, user) = (tempfile::tempdir().unwrap(), me());
        let segments = of(folder.path(), &user, 3 << 20, 2);
        segments.one(7, &mut |path| files::sync_named(path)).unwrap();
        let [_, path] = segments.paths(7);
        assert_eq!(fs::read(&path).unwrap(), vec![0; 3 << 20]);
        fs::remove_file(path).unwrap();
        let made = segments.measure(&Interrupt::never()).unwrap();
        assert_eq!(made.slices.iter().map(|slice| slice.operations).collect::<Vec<_>>(), [3, 3]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_wal_segment_is_synced_as_often_as_by_postgres() {
        let (folder, user) = (tempfile::tempdir().unwrap(), me());
        let synced = |is_synced| {
            let segments = NewSegments { synced: is_synced, ..of(folder.path(), &user, 1 << 20, 1) };
            let [first, path] = segments.paths(0);
            let mut seen = Vec::new();
            let mut note = |path: &Path| {
                seen.push((path.to_owned(), path.exists()));
                Ok(())
            };
            segments.one(0, &mut note).unwrap();
            let wanted = [first.clone(), first, path, folder.path().to_owned()].map(|path| (path, true));
            (seen.len(), seen == wanted)
        };
        // XLogFileInitInternal once, durable_rename twice and the folder.
        assert_eq!((synced(true), synced(false)), ((4, true), (0, false)));
    }

    #[test]
    fn segments_belong_to_the_user_of_the_server() {
        if !users::is_root() {
            println!("skipped: giving files away needs root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let user = User { uid: 4711, gid: 4712, ..me() };
        let segments = of(folder.path(), &user, 1 << 20, 1);
        segments.one(0, &mut |_| Ok(())).unwrap();
        let facts = fs::metadata(&segments.paths(0)[1]).unwrap();
        assert_eq!((facts.uid(), facts.gid()), (4711, 4712));
    }

    #[test]
    fn without_zeros_a_segment_has_its_length_and_no_blocks() {
        let (folder, user) = (tempfile::tempdir().unwrap(), me());
        let segments = NewSegments { zeros: false, synced: false, ..of(folder.path(), &user, 1 << 20, 1) };
        segments.one(0, &mut |_| Ok(())).unwrap();
        assert_eq!(fs::metadata(&segments.paths(0)[1]).unwrap().len(), 1 << 20);
    }

    #[test]
    fn no_room_in_any_step_is_no_failure() {
        let (folder, user) = (tempfile::tempdir().unwrap(), me());
        let segments = of(folder.path(), &user, 1 << 20, 1);
        for (number, step) in (0..).zip(1..=4) {
            for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
                let mut calls = 0;
                let ended = segments.one(number, &mut |_| {
                    calls += 1;
                    if calls == step { Err(kind.into()) } else { Ok(()) }
                });
                assert!(matches!(ended, Err(Stop::Full)), "{step}: {ended:?}");
                segments.paths(number).iter().for_each(|path| drop(fs::remove_file(path)));
            }
        }
    }

    #[test]
    fn where_others_would_be_left_without_room_nothing_is_written() {
        let (folder, user) = (tempfile::tempdir().unwrap(), me());
        let segments = NewSegments { spare: u64::MAX, ..of(folder.path(), &user, 1 << 20, 2) };
        let why = segments.measure(&Interrupt::never()).unwrap().unavailable.unwrap();
        assert!(why.starts_with("no room for 2 segments, 2 MiB: ") && why.ends_with(" stays for the server"), "{why}");
    }

    #[test]
    fn a_full_filesystem_gives_no_figure_and_leaves_nothing() {
        if !users::is_root() {
            println!("skipped: mounting a small tmpfs needs root");
            return;
        }
        let (folder, user) = (tempfile::tempdir().unwrap(), me());
        let call = |args: &[&str]| std::process::Command::new(args[0]).args(&args[1..]).status().unwrap().success();
        let path = folder.path().to_str().unwrap();
        assert!(call(&["mount", "-t", "tmpfs", "-o", "size=5m", "none", path]));
        let measured = of(folder.path(), &user, 2 << 20, 4).measure(&Interrupt::never());
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert!(call(&["umount", path]));
        let measured = measured.unwrap();
        assert_eq!(measured.unavailable.as_deref(), Some("no room for 4 segments, 8 MiB: 5 MiB free"));
        assert_eq!((measured.done, left), (None, 0));
    }

    #[test]
    fn an_interrupt_and_a_missing_folder_end_it() {
        let (interrupt, user) = (Interrupt::never(), me());
        let segments = of(Path::new("/gone"), &user, 1 << 20, 1);
        let error = match segments.one(0, &mut |_| Ok(())) {
            Err(Stop::Failed(error)) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(error.contains("make the WAL segment /gone/xlogtemp.pgstrata-0.made"), "{error}");
        assert!(segments.measure(&interrupt).is_err());
        let folder = tempfile::tempdir().unwrap();
        interrupt.raise();
        assert!(of(folder.path(), &user, 1 << 20, 1).measure(&interrupt).is_err());
    }
}
