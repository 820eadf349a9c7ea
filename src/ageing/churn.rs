//! Creates and deletes files of PostgreSQL's sizes: WAL segments, temporary files, relation segments, base backup
//! files.
//!
//! Real writes, synced: fallocate would age the allocator of in-place filesystems alone.

use super::AgeingSubject;
use super::spree::Spree;
use crate::error::{Context, Error, Result};
use crate::host::time::{micros, now};
use crate::host::{files, folders};
use crate::record::age::FileWork;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

const MIB: u64 = 1 << 20;
/// Peak share of the free space in use during the churn, and the share in use at its end.
const MOST: f64 = 0.75;
const LEFT: f64 = 0.25;
/// The largest file takes this fraction of the free space.
const LARGEST: u64 = 16;

/// Writes the free space `times` over.
pub(super) fn run(subject: &AgeingSubject<'_>, times: u64, data_bytes: u64) -> Result<FileWork> {
    let begun = now();
    let folder = subject.folder.join("churn");
    folders::make_all(&folder, 0o700)?;
    let Some(free) = files::room(&folder)?.map(|room| room.free) else {
        let place = folder.display();
        return Err(Error::host(format!("the filesystem of {place} has no size, so it has no free space")));
    };
    let mut random = ChaCha8Rng::seed_from_u64(subject.seed);
    let mut spree = Spree::new(&mut random, subject.interrupt);
    let goal = free.saturating_mul(times);
    while spree.work.written_bytes < goal {
        let bytes = size(&mut random, data_bytes).min(free / LARGEST).max(4096);
        while !spree.there.is_empty() && spree.work.left_bytes + bytes > (free as f64 * MOST) as u64 {
            let place = random.next_u64() as usize % spree.there.len();
            spree.delete(place)?;
        }
        let path = folder.join(spree.work.created.to_string());
        spree.create(&path, bytes)?;
    }
    while spree.work.left_bytes > (free as f64 * LEFT) as u64 {
        let place = random.next_u64() as usize % spree.there.len();
        spree.delete(place)?;
    }
    folders::sync_filesystem(&folder).or_host(|| format!("sync {}", folder.display()))?;
    spree.work.elapsed_us = micros(begun.elapsed());
    Ok(spree.work)
}

/// Of ten files, six are WAL segments, two are temporary files of any size up to 64 MiB, one is a relation segment, and
/// one is part of a base backup.
fn size(random: &mut ChaCha8Rng, data_bytes: u64) -> u64 {
    match random.next_u64() % 10 {
        0..6 => 16 * MIB,
        6..8 => (random.next_u64() % (64 * MIB)).max(8192),
        8 => 1024 * MIB,
        _ => data_bytes / 4,
    }
}
