//! Creates and deletes files beside the cluster, and counts them.

use super::pages::refused;
use crate::error::{Context, Result};
use crate::host::files;
use crate::host::signals::Interrupt;
use crate::record::age::FileWork;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Size of one write. The 2011 study used dd with the same block size.
const BLOCK: usize = 512 * 1024;

/// Files created and deleted so far.
pub(super) struct Spree<'a> {
    pub work: FileWork,
    /// Existing files, with their sizes.
    pub there: Vec<(PathBuf, u64)>,
    interrupt: &'a Interrupt,
    block: Vec<u8>,
}

impl<'a> Spree<'a> {
    /// Starts empty. The data written are random: they neither compress nor deduplicate.
    pub fn new(random: &mut ChaCha8Rng, interrupt: &'a Interrupt) -> Spree<'a> {
        let mut block = vec![0; BLOCK];
        random.fill_bytes(&mut block);
        Spree { work: FileWork::default(), there: Vec::new(), interrupt, block }
    }

    /// Creates a file, writes and syncs it.
    pub fn create(&mut self, path: &Path, bytes: u64) -> Result<()> {
        self.interrupt.check()?;
        let mut file = files::create_new(path, 0o600).map_err(|e| refused(&e, path))?;
        let mut left = bytes;
        while left > 0 {
            // A number in each block makes it unique.
            self.block[..8].copy_from_slice(&(self.work.written_bytes + left).to_le_bytes());
            let part = left.min(BLOCK as u64);
            file.write_all(&self.block[..part as usize]).map_err(|e| refused(&e, path))?;
            left -= part;
        }
        file.sync_all().map_err(|e| refused(&e, path))?;
        files::drop_cache(&file).or_host(|| format!("drop the cache of {}", path.display()))?;
        self.work.created += 1;
        self.work.written_bytes += bytes;
        self.work.left_bytes += bytes;
        self.there.push((path.to_path_buf(), bytes));
        Ok(())
    }

    /// Deletes the existing file at this index.
    pub fn delete(&mut self, place: usize) -> Result<()> {
        let (path, bytes) = self.there.swap_remove(place);
        files::remove(&path)?;
        self.work.deleted += 1;
        self.work.left_bytes -= bytes;
        Ok(())
    }
}
