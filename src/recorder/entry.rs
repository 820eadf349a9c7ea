//! One request to a virtual disk, as logged.

use sha2::{Digest, Sha256};

/// A position in the single sequence of a recording. Each request takes two: at submission and at completion.
pub type Seq = u64;

/// Later than every request.
pub const NEVER: Seq = Seq::MAX;

/// The numbers are those in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    Write = 1,
    Flush = 2,
    /// The content is undefined afterwards; this recorder returns zeros.
    Discard = 3,
    /// Data like a write, not a hint.
    WriteZeroes = 4,
}

/// First half of a content's SHA-256.
pub type Hash = [u8; 16];

pub(super) fn hash(content: &[u8]) -> Hash {
    Sha256::digest(content).first_chunk().copied().unwrap_or_default()
}

/// A completed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Number of the disk, from 0.
    pub disk: u16,
    pub op: Op,
    /// True if the request required its data to be stable before the reply (force unit access).
    pub fua: bool,
    /// When the request was read from the kernel.
    pub submitted: Seq,
    /// Just before its reply was sent.
    pub completed: Seq,
    /// Microseconds from the start of the recording to the completion.
    pub at_us: u64,
    pub offset: u64,
    /// Bytes; 0 for a flush.
    pub length: u64,
    /// Hash of a write's content; zeros otherwise.
    pub hash: Hash,
    /// Offset of the content in the log file.
    pub stored: u64,
}

impl Entry {
    /// True if it changes the content of its disk.
    pub fn changes(&self) -> bool {
        self.op != Op::Flush
    }
}
