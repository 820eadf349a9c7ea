//! Page rewrite: what checkpoints do to the places of pages, without a server.
//!
//! A page that is overwritten in place leaves the layout as it is; one that is copied on write gets a new place. The bytes
//! stay the same, so that a crash leaves the same cluster.

use super::PAGE;
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
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The first number that a server gives to a user's object, hence to its file (`FirstNormalObjectId`, access/transam.h).
const FIRST_OF_USERS: u64 = 16384;

/// A file of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationFile {
    pub path: PathBuf,
    /// Its size in whole pages, bytes.
    pub bytes: u64,
}

/// The files of the user relations of a cluster, in all its databases, sorted by path.
///
/// # Errors
/// With the path.
pub fn relation_files(data: &Path) -> Result<Vec<RelationFile>> {
    let mut found = Vec::new();
    for database in folders::list(&data.join("base"))? {
        for path in folders::list(&database)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let number: String = name.chars().take_while(char::is_ascii_digit).collect();
            let facts = paths::look_at(&path)?;
            let of_users = number.parse().is_ok_and(|number: u64| number >= FIRST_OF_USERS);
            if of_users && facts.kind == Kind::RegularFile && facts.bytes >= PAGE {
                found.push(RelationFile { path, bytes: facts.bytes - facts.bytes % PAGE });
            }
        }
    }
    Ok(found)
}

/// Writes random pages back until so many bytes are written as the files hold `times` over.
///
/// # Errors
/// The kernel's, with the path; interrupted.
pub fn rewrite(
    files: &[RelationFile],
    times: u64,
    batch_pages: u64,
    seed: u64,
    interrupt: &Interrupt,
) -> Result<PageRewrites> {
    let begun = now();
    let pages: u64 = files.iter().map(|file| file.bytes / PAGE).sum();
    if pages == 0 {
        return Err(Error::user("the cluster has no user relation whose pages could be rewritten")
            .hint("use a workload with data, such as pgbench"));
    }
    let mut done = PageRewrites { batch_pages: batch_pages.min(pages), ..PageRewrites::default() };
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut left = pages.saturating_mul(times);
    while left > 0 {
        let batch = draw(&mut random, pages, done.batch_pages.min(left));
        write_batch(files, &batch, interrupt)?;
        left -= batch.len() as u64;
        done.batches += 1;
        done.written_bytes += batch.len() as u64 * PAGE;
    }
    for file in files {
        files::drop_cache(&files::open(&file.path)?)
            .or_host(|| format!("drop the cache of {}", file.path.display()))?;
    }
    done.elapsed_us = micros(begun.elapsed());
    Ok(done)
}

/// So many different pages, in order: a checkpoint writes each dirty page once, sorted.
fn draw(random: &mut ChaCha8Rng, pages: u64, count: u64) -> BTreeSet<u64> {
    let mut drawn = BTreeSet::new();
    while (drawn.len() as u64) < count {
        // Pages are few against 2^64: the bias of the remainder is nothing.
        drawn.insert(random.next_u64() % pages);
    }
    drawn
}

/// Writes the pages back, file by file, and syncs each file that got one.
fn write_batch(files: &[RelationFile], batch: &BTreeSet<u64>, interrupt: &Interrupt) -> Result<()> {
    let mut page = vec![0; PAGE as usize];
    let mut first = 0;
    for file in files {
        let end = first + file.bytes / PAGE;
        let mut of_file = batch.range(first..end).peekable();
        if of_file.peek().is_some() {
            interrupt.check()?;
            let gone = || Error::bug(format!("{} is gone", file.path.display()));
            let open = files::open_to_change(&file.path)?.ok_or_else(gone)?;
            for number in of_file {
                write_back(&open, (number - first) * PAGE, &mut page).map_err(|e| refused(&e, &file.path))?;
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

/// What the kernel says; a filesystem that has no room for a copy of a page it holds already is a result.
pub(super) fn refused(e: &std::io::Error, path: &Path) -> Error {
    let error = Error::host(e.to_string()).while_doing(format!("write {} while ageing the stack", path.display()));
    match e.kind() {
        ErrorKind::StorageFull => error.hint("the filesystem is full: enlarge the stack, or reduce `fill` or the data"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn files_in(folder: &Path, pages: &[u64]) -> Vec<RelationFile> {
        fs::create_dir_all(folder.join("base/5")).unwrap();
        for (number, pages) in (FIRST_OF_USERS..).zip(pages) {
            let bytes: Vec<u8> = (0..pages * PAGE).map(|at| (at / 97) as u8).collect();
            fs::write(folder.join(format!("base/5/{number}")), bytes).unwrap();
        }
        fs::write(folder.join("base/5/1259"), vec![1; 8192]).unwrap();
        fs::write(folder.join("base/5/pg_filenode.map"), vec![1; 8192]).unwrap();
        relation_files(folder).unwrap()
    }

    #[test]
    fn only_files_of_users_are_rewritten_and_keep_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let files = files_in(folder.path(), &[40, 7]);
        assert_eq!(files.iter().map(|file| file.bytes / PAGE).collect::<Vec<_>>(), [40, 7]);
        let before: Vec<Vec<u8>> = files.iter().map(|file| fs::read(&file.path).unwrap()).collect();
        let done = rewrite(&files, 3, 10, 1, &Interrupt::never()).unwrap();
        assert_eq!((done.written_bytes, done.batches, done.batch_pages), (3 * 47 * PAGE, 15, 10));
        let after: Vec<Vec<u8>> = files.iter().map(|file| fs::read(&file.path).unwrap()).collect();
        assert!(before == after);
    }

    #[test]
    fn a_batch_has_each_page_at_most_once_and_all_pages_get_their_turn() {
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
    fn an_interrupt_ends_it_and_a_cluster_without_data_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let files = files_in(folder.path(), &[4]);
        let interrupt = Interrupt::never();
        interrupt.raise();
        assert!(rewrite(&files, 1, 2, 1, &interrupt).is_err());
        let none = rewrite(&[], 1, 2, 1, &Interrupt::never()).unwrap_err();
        assert!(none.to_string().contains("no user relation"), "{none}");
    }
}
