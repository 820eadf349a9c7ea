//! Page rewrite: reproduces, without a server, how checkpoints move pages on disk.
//!
//! A page overwritten in place leaves the layout unchanged; one that is copied on write moves. The bytes stay the same,
//! so a crash leaves the same cluster.

use crate::error::{Context, Error, Result};
use crate::host::files::{self, File};
use crate::host::folders;
use crate::host::paths::{self, Kind};
use crate::host::signals::Interrupt;
use crate::host::time::{micros, now};
use crate::record::age::PageRewrites;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// First object ID that a server assigns to a user's object, hence to its file (`FirstNormalObjectId`,
/// access/transam.h).
const FIRST_OF_USERS: u64 = 16384;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationFile {
    pub path: PathBuf,
    /// Size in whole pages, bytes.
    pub bytes: u64,
}

/// Sort key of a file in a checkpoint: database, relation file number, fork, segment.
type Order = (Option<u64>, u64, String, u64);

/// Files of a cluster's user relations, in all its databases, in checkpoint order. `page` is the page size in bytes.
///
/// # Errors
/// With the path.
pub fn relation_files(data: &Path, page: u64) -> Result<Vec<RelationFile>> {
    let mut found: Vec<(Order, RelationFile)> = Vec::new();
    for database in folders::list(&data.join("base"))? {
        let number = database.file_name().and_then(|name| name.to_str()?.parse().ok());
        for path in folders::list(&database)? {
            let facts = paths::look_at(&path)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let Some((relation, fork, segment)) = named(&name).filter(|(relation, _, _)| *relation >= FIRST_OF_USERS)
            else {
                continue;
            };
            if facts.kind == Kind::RegularFile && facts.bytes >= page {
                let order = (number, relation, fork.to_owned(), segment);
                found.push((order, RelationFile { path, bytes: facts.bytes - facts.bytes % page }));
            }
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found.into_iter().map(|(_, file)| file).collect())
}

/// Splits the file name of a relation: `16384_vm.2` gives number, fork and segment.
fn named(name: &str) -> Option<(u64, &str, u64)> {
    let (first, segment) = name.split_once('.').unwrap_or((name, "0"));
    let (relation, fork) = first.split_once('_').unwrap_or((first, ""));
    Some((relation.parse().ok()?, fork, segment.parse().ok()?))
}

#[derive(Debug, Clone, Copy)]
pub struct Rewrite {
    /// Page size, bytes.
    pub page: u64,
    pub times: u64,
    /// Pages between two syncs.
    pub batch: u64,
    pub seed: u64,
}

/// Writes random pages back, unchanged, until the bytes written reach the requested multiple of the files' size.
///
/// # Errors
/// The kernel's, with the path; interrupted.
pub fn rewrite(files: &[RelationFile], of: Rewrite, interrupt: &Interrupt) -> Result<PageRewrites> {
    let begun = now();
    let pages: u64 = files.iter().map(|file| file.bytes / of.page).sum();
    if pages == 0 {
        return Err(Error::user("the cluster has no user relation whose pages could be rewritten")
            .hint("use a workload with data, such as pgbench"));
    }
    let mut done = PageRewrites { batch_pages: of.batch.min(pages), ..PageRewrites::default() };
    let mut random = ChaCha8Rng::seed_from_u64(of.seed);
    let mut left = pages.saturating_mul(of.times);
    while left > 0 {
        let batch = draw(&mut random, pages, done.batch_pages.min(left));
        write_batch(files, of.page, &batch, interrupt)?;
        left -= batch.len() as u64;
        done.batches += 1;
        done.written_bytes += batch.len() as u64 * of.page;
    }
    for file in files {
        files::drop_cache(&files::open(&file.path)?)
            .or_host(|| format!("drop the cache of {}", file.path.display()))?;
    }
    done.elapsed_us = micros(begun.elapsed());
    Ok(done)
}

/// Draws this many distinct pages, in order: a checkpoint writes each dirty page once, sorted.
fn draw(random: &mut ChaCha8Rng, pages: u64, count: u64) -> BTreeSet<u64> {
    let mut drawn = BTreeSet::new();
    while (drawn.len() as u64) < count {
        // There are few pages compared with 2^64: the modulo bias is negligible.
        drawn.insert(random.next_u64() % pages);
    }
    drawn
}

/// Writes the pages back, file by file, and syncs each file that was written.
fn write_batch(files: &[RelationFile], page: u64, batch: &BTreeSet<u64>, interrupt: &Interrupt) -> Result<()> {
    let mut bytes = vec![0; page as usize];
    let mut first = 0;
    for file in files {
        let end = first + file.bytes / page;
        let mut of_file = batch.range(first..end).peekable();
        if of_file.peek().is_some() {
            interrupt.check()?;
            let open = files::open_to_change(&file.path)?;
            let open = open.ok_or_else(|| Error::bug(format!("{} is gone", file.path.display())))?;
            for number in of_file {
                write_back(&open, (number - first) * page, &mut bytes).map_err(|e| refused(&e, &file.path))?;
            }
            open.sync_all().map_err(|e| refused(&e, &file.path))?;
        }
        first = end;
    }
    Ok(())
}

fn write_back(file: &File, offset: u64, page: &mut [u8]) -> std::io::Result<()> {
    files::read_exact_at(file, page, offset)?;
    files::write_all_at(file, page, offset)
}

/// The kernel's error; a filesystem without room to copy a page that it already holds is a result.
pub(super) fn refused(e: &std::io::Error, path: &Path) -> Error {
    let advice = "the filesystem is full: enlarge the stack, or reduce `fill` or the data";
    files::write_refused(e, format!("write {} while ageing the stack", path.display()), advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const PAGE: u64 = 16384;

    fn files_in(folder: &Path, pages: &[u64]) -> Vec<RelationFile> {
        fs::create_dir_all(folder.join("base/5")).unwrap();
        for (number, pages) in (FIRST_OF_USERS..).zip(pages) {
            let bytes: Vec<u8> = (0..pages * PAGE).map(|at| (at / 97) as u8).collect();
            fs::write(folder.join(format!("base/5/{number}")), bytes).unwrap();
        }
        fs::write(folder.join("base/5/1259"), vec![1; PAGE as usize]).unwrap();
        fs::write(folder.join("base/5/pg_filenode.map"), vec![1; PAGE as usize]).unwrap();
        relation_files(folder, PAGE).unwrap()
    }

    fn of(times: u64, batch: u64) -> Rewrite {
        Rewrite { page: PAGE, times, batch, seed: 1 }
    }

    #[test]
    fn files_come_in_the_order_of_a_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["5/16384", "5/16384.2", "5/16384.10", "5/16384_fsm", "5/16400", "5/100000", "16390/16391"];
        for path in paths.iter().rev() {
            let path = folder.path().join("base").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![0; PAGE as usize]).unwrap();
        }
        fs::write(folder.path().join("base/5/16384.x"), vec![0; PAGE as usize]).unwrap();
        let found = relation_files(folder.path(), PAGE).unwrap();
        let base = folder.path().join("base");
        let found: Vec<_> = found.iter().map(|file| file.path.strip_prefix(&base).unwrap().to_str().unwrap()).collect();
        assert_eq!(found, paths);
    }

    #[test]
    fn only_files_of_users_are_rewritten_and_keep_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let files = files_in(folder.path(), &[40, 7]);
        assert_eq!(files.iter().map(|file| file.bytes / PAGE).collect::<Vec<_>>(), [40, 7]);
        let before: Vec<Vec<u8>> = files.iter().map(|file| fs::read(&file.path).unwrap()).collect();
        let done = rewrite(&files, of(3, 10), &Interrupt::never()).unwrap();
        assert_eq!((done.written_bytes, done.batches, done.batch_pages), (3 * 47 * PAGE, 15, 10));
        let after: Vec<Vec<u8>> = files.iter().map(|file| fs::read(&file.path).unwrap()).collect();
        assert!(before == after);
    }

    #[test]
    fn a_batch_has_no_duplicate_pages_and_batches_cover_all() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            let batch = draw(&mut random, 64, 16);
            assert_eq!(batch.len(), 16);
            seen.extend(batch);
        }
        assert_eq!(seen.len(), 64);
        assert_eq!(draw(&mut random, 4, 4).len(), 4, "a batch of all pages ends");
    }

    #[test]
    fn an_interrupt_ends_ageing_and_an_empty_cluster_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let files = files_in(folder.path(), &[4]);
        let interrupt = Interrupt::never();
        interrupt.raise();
        assert!(rewrite(&files, of(1, 2), &interrupt).is_err());
        let none = rewrite(&[], of(1, 2), &Interrupt::never()).unwrap_err();
        assert!(none.to_string().contains("no user relation"), "{none}");
    }
}
