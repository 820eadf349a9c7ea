//! Fills a filesystem like the study of 2011: each step adds files of 9 MB to ten folders, folder by folder, 18 % of
//! the size in all, and may then delete a quarter of them: files 256 to 511 of the 1000 in each folder.
//!
//! On a small filesystem the files are smaller, so that each folder gets at least 16 of them per step. A snapshot is
//! made after each step, including the last, possibly shorter one, and before its deletes: deleted files then stay
//! held.

use super::spree::Spree;
use super::{AgeingSnapshots, AgeingSubject};
use crate::error::{Context, Error, Result};
use crate::host::time::{micros, now};
use crate::host::{files, folders};
use crate::record::age::{FileWork, SnapshotWork};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::path::{Path, PathBuf};

const FOLDERS: u64 = 10;
/// 18 blocks of 512 KiB.
const FILE: u64 = 18 * 512 * 1024;
/// Share of the size that a step adds: 88 of 500 GB in the study.
const STEP: f64 = 0.18;
/// Range of a folder's files that are deleted: first and end, as fractions.
const DELETED: [f64; 2] = [0.256, 0.512];
/// Minimum files per folder in a step.
const LEAST_FILES: u64 = 16;

/// Fills until `percent` of the filesystem is used, including what its snapshots hold.
pub fn run(subject: &AgeingSubject<'_>, percent: u64, deletes: bool) -> Result<(FileWork, Option<SnapshotWork>)> {
    let begun = now();
    let folder = subject.folder.join("fill");
    for number in 0..FOLDERS {
        folders::make_all(&folder.join(format!("dir{number}")), 0o700)?;
    }
    folders::sync_filesystem(&folder).or_host(|| format!("sync {}", folder.display()))?;
    let Some(room) = files::room(&folder)? else {
        return Err(Error::host(format!("the filesystem of {} has no size, so it cannot be filled", folder.display())));
    };
    let size = room.used + room.free;
    let target = ((size as f64 * percent as f64 / 100.0) as u64).saturating_sub(room.used);
    let of_folder = (size as f64 * STEP / FOLDERS as f64) as u64;
    let file_bytes = FILE.min(of_folder / LEAST_FILES).max(4096);
    let mut random = ChaCha8Rng::seed_from_u64(subject.seed);
    let mut spree = Spree::new(&mut random, subject.interrupt);
    spree.work.file_bytes = Some(file_bytes);
    let mut snapshots = subject.snapshots.as_ref().map(TakenSnapshots::begin).transpose()?;
    let holds = snapshots.as_ref().is_some_and(|taken| taken.by.of_filesystem);
    let first = FillStep { folder: &folder, number: 0, files: of_folder / file_bytes, file_bytes, target, holds };
    steps(first, &mut spree, deletes, snapshots.as_mut())?;
    folders::sync_filesystem(&folder).or_host(|| format!("sync {}", folder.display()))?;
    spree.work.elapsed_us = micros(begun.elapsed());
    Ok((spree.work, snapshots.map(TakenSnapshots::end).transpose()?))
}

/// Runs steps until the target is reached.
fn steps(
    mut step: FillStep<'_>,
    spree: &mut Spree<'_>,
    deletes: bool,
    mut taken: Option<&mut TakenSnapshots<'_>>,
) -> Result<()> {
    loop {
        let is_whole = step.fill(spree)?;
        if let Some(taken) = &mut taken {
            taken.make()?;
        }
        if !is_whole {
            return Ok(());
        }
        if deletes {
            step.delete_quarter(spree)?;
        }
        step.number += 1;
    }
}

/// Snapshots taken so far.
struct TakenSnapshots<'a> {
    by: &'a AgeingSnapshots<'a>,
    work: SnapshotWork,
}

impl<'a> TakenSnapshots<'a> {
    fn begin(by: &'a AgeingSnapshots<'a>) -> Result<TakenSnapshots<'a>> {
        let (used_before_bytes, of_filesystem) = ((by.used)()?, by.of_filesystem);
        Ok(TakenSnapshots { by, work: SnapshotWork { used_before_bytes, of_filesystem, ..SnapshotWork::default() } })
    }

    fn make(&mut self) -> Result<()> {
        (self.by.make)(self.work.made + 1)?;
        self.work.made += 1;
        Ok(())
    }

    fn end(self) -> Result<SnapshotWork> {
        Ok(SnapshotWork { used_after_bytes: (self.by.used)()?, ..self.work })
    }
}

struct FillStep<'a> {
    folder: &'a Path,
    number: u64,
    /// Files per folder.
    files: u64,
    file_bytes: u64,
    /// Bytes that all steps add together.
    target: u64,
    /// True if deleted files stay held by the snapshot before.
    holds: bool,
}

impl FillStep<'_> {
    fn path(&self, folder: u64, file: u64) -> PathBuf {
        self.folder.join(format!("dir{folder}/temp-{}-{folder}-{file}.dd", self.number))
    }

    /// Adds the step's files; `false` if `target` bytes are used or held before it is complete.
    fn fill(&self, spree: &mut Spree<'_>) -> Result<bool> {
        for folder in 0..FOLDERS {
            for file in 0..self.files {
                let used = if self.holds { spree.work.written_bytes } else { spree.work.left_bytes };
                if used + self.file_bytes > self.target {
                    return Ok(false);
                }
                spree.create(&self.path(folder, file), self.file_bytes)?;
            }
        }
        Ok(true)
    }

    fn delete_quarter(&self, spree: &mut Spree<'_>) -> Result<()> {
        let [first, end] = DELETED.map(|share| (self.files as f64 * share) as u64);
        for folder in 0..FOLDERS {
            for file in first..end {
                let path = self.path(folder, file);
                if let Some(place) = spree.there.iter().position(|(there, _)| *there == path) {
                    spree.delete(place)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::signals::Interrupt;
    use std::cell::RefCell;

    #[test]
    fn a_step_fills_folders_and_deletes_a_quarter_of_each() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..FOLDERS {
            std::fs::create_dir(folder.path().join(format!("dir{number}"))).unwrap();
        }
        let interrupt = Interrupt::never();
        let mut spree = Spree::new(&mut ChaCha8Rng::seed_from_u64(1), &interrupt);
        let step =
            FillStep { folder: folder.path(), number: 0, files: 16, file_bytes: 4096, target: 1 << 30, holds: false };
        assert!(step.fill(&mut spree).unwrap());
        assert_eq!((spree.work.created, spree.work.left_bytes), (160, 160 * 4096));
        step.delete_quarter(&mut spree).unwrap();
        assert_eq!((spree.work.deleted, spree.there.len()), (40, 120));
        let left = |number| std::fs::exists(folder.path().join(format!("dir3/temp-0-3-{number}.dd"))).unwrap();
        assert!(left(3) && !left(4) && !left(7) && left(8));
        let next = FillStep { number: 1, target: 130 * 4096, ..step };
        assert!(!next.fill(&mut spree).unwrap());
        assert_eq!(spree.work.left_bytes, 130 * 4096);
        // Held bytes count as used: 170 files were written by now.
        let held = FillStep { number: 2, target: 175 * 4096, holds: true, ..next };
        assert!(!held.fill(&mut spree).unwrap());
        assert_eq!((spree.work.created, spree.work.left_bytes), (175, 135 * 4096));
    }

    #[test]
    fn each_step_has_its_snapshot_before_its_deletes() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = Interrupt::never();
        let seen = RefCell::new(Vec::new());
        let count = |number: u64| {
            let files = |dir: u64| std::fs::read_dir(folder.path().join(format!("fill/dir{dir}"))).unwrap().count();
            seen.borrow_mut().push((number, (0..FOLDERS).map(files).sum::<usize>()));
        };
        let by = AgeingSnapshots {
            make: &|number| {
                count(number);
                Ok(())
            },
            used: &|| Ok(7),
            of_filesystem: true,
        };
        let mut taken = TakenSnapshots::begin(&by).unwrap();
        for number in 0..FOLDERS {
            std::fs::create_dir_all(folder.path().join(format!("fill/dir{number}"))).unwrap();
        }
        let fill = folder.path().join("fill");
        let step = FillStep { folder: &fill, number: 0, files: 16, file_bytes: 4096, target: 400 * 4096, holds: true };
        let mut spree = Spree::new(&mut ChaCha8Rng::seed_from_u64(1), &interrupt);
        steps(step, &mut spree, true, Some(&mut taken)).unwrap();
        // 160 files, 40 of them deleted, twice; then the rest of 400.
        assert_eq!(*seen.borrow(), [(1, 160), (2, 280), (3, 320)]);
        assert_eq!((spree.work.created, spree.work.deleted), (400, 80));
        let wanted = SnapshotWork { made: 3, used_before_bytes: 7, used_after_bytes: 7, of_filesystem: true };
        assert_eq!(taken.end().unwrap(), wanted);
    }
}
