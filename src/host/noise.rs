//! Buffers for direct writes, filled with bytes that a device can neither compress nor deduplicate: random, and with a
//! distinct stamp in each 4 KiB block.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Longest chunk handed out.
pub(crate) const CHUNK: usize = 1 << 20;
/// Alignment for direct writes: the largest logical block there is.
const ALIGNMENT: usize = 64 << 10;
/// Size of a stamped block, which differs from every other.
pub(crate) const STAMPED: usize = 4096;

pub(crate) struct Noise {
    memory: Vec<u8>,
    start: usize,
    chunk: usize,
}

impl Noise {
    /// For chunks of at most [`CHUNK`] bytes.
    pub fn new(seed: u64) -> Noise {
        Noise::of(seed, CHUNK)
    }

    /// A whole chunk, without new stamps.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.chunk]
    }

    /// For chunks of at most `chunk` bytes.
    pub fn of(seed: u64, chunk: usize) -> Noise {
        let mut memory = vec![0; chunk + ALIGNMENT];
        ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut memory);
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Noise { memory, start, chunk }
    }

    /// Same, for one of several writes to the same place: `number` makes each write's bytes distinct.
    pub fn again(&mut self, offset: u64, length: usize, number: u64) -> &[u8] {
        let (start, length) = (self.start, self.at(offset, length).len());
        let piece = &mut self.memory[start..start + length];
        for block in piece.chunks_mut(STAMPED) {
            if let Some(stamp) = block.get_mut(8..16) {
                stamp.copy_from_slice(&number.to_le_bytes());
            }
        }
        piece
    }

    /// Zeros, as long as the longest chunk.
    pub fn zeroed(&mut self) -> &[u8] {
        let piece = &mut self.memory[self.start..self.start + self.chunk];
        piece.fill(0);
        piece
    }

    /// Content of `length` bytes of the file at `offset`.
    pub fn at(&mut self, offset: u64, length: usize) -> &[u8] {
        let chunk = &mut self.memory[self.start..self.start + length.min(self.chunk)];
        for (block, number) in chunk.chunks_mut(STAMPED).zip(offset / STAMPED as u64..) {
            if let Some(stamp) = block.first_chunk_mut() {
                *stamp = number.to_le_bytes();
            }
        }
        chunk
    }
}
