//! One request to a virtual disk, as it stands in the log.

use sha2::{Digest, Sha256};

/// A place in the one sequence of a recording. Each request takes two: one when it is submitted, one when it completes.
pub type Seq = u64;

/// Later than every request.
pub const NEVER: Seq = Seq::MAX;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    Write,
    Flush,
    /// The content is undefined afterwards; this recorder returns zeros.
    Discard,
    /// Data like a write, not a hint.
    WriteZeroes,
}

impl Op {
    pub(super) fn code(self) -> u8 {
        match self {
            Op::Write => 1,
            Op::Flush => 2,
            Op::Discard => 3,
            Op::WriteZeroes => 4,
        }
    }

    pub(super) fn of_code(code: u8) -> Option<Op> {
        [Op::Write, Op::Flush, Op::Discard, Op::WriteZeroes].into_iter().find(|op| op.code() == code)
    }
}

/// First half of the SHA-256 of a content.
pub type Hash = [u8; 16];

pub(super) fn hash(content: &[u8]) -> Hash {
    let mut half = Hash::default();
    half.copy_from_slice(&Sha256::digest(content)[..16]);
    half
}

/// A request that completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Number of the disk, from 0.
    pub disk: u16,
    pub op: Op,
    /// Whether the request asked for its data to be stable before its reply (force unit access).
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
    /// Of the content of a write; zeros otherwise.
    pub hash: Hash,
    /// Where the content stands in the log file.
    pub stored: u64,
}

impl Entry {
    /// Whether it changes the content of its disk.
    pub fn changes(&self) -> bool {
        self.op != Op::Flush
    }
}
