//! Preconditioning of a drive before stacks were built on it, so that it is measured in its steady state.

use serde::{Deserialize, Serialize};

/// Length of a round in SNIA's specification, microseconds.
pub const SNIA_ROUND_US: u64 = 60_000_000;

/// One drive, or the part of it that a stack uses; prepared once in a run and used by its trials in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriveRecord {
    /// Identifies the drive within a run: path, serial number and part of a drive; folder and size of an image.
    pub key: String,
    /// Node of the stack to be built on it.
    pub node: String,
    /// Device written to.
    pub device: String,
    /// Model that the drive reports.
    pub model: Option<String>,
    /// True for an image file: writes went through the filesystem that holds it.
    pub is_image: bool,
    /// Size of the device, bytes; all of it was written.
    pub bytes: u64,
    /// Purge before the writes.
    pub purge: Purge,
    /// Sequential writes.
    pub fill: Fill,
    /// Size of one random write, bytes.
    pub block_bytes: u64,
    /// Random writes in flight.
    pub depth: u32,
    /// Target length of a round, microseconds.
    pub round_us: u64,
    /// Maximum number of rounds.
    pub most_rounds: u32,
    /// The rounds, in order, without pauses between them.
    pub rounds: Vec<DriveRound>,
    /// Start, wall clock, microseconds since 1970-01-01 UTC.
    pub began_us: u64,
    /// End, same clock.
    pub ended_us: u64,
}

/// Substitute for SNIA's PURGE, which returns a drive to its factory state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Purge {
    /// A secure discard of the whole device (BLKSECDISCARD).
    SecureDiscard,
    /// A discard of the whole device (BLKDISCARD); the drive decides what a discard erases.
    Discard,
    /// Nothing.
    None {
        /// Reason.
        why: String,
    },
}

/// Sequential writes over the whole device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// Number of times the device was overwritten.
    pub times: u32,
    /// Size of one write, bytes.
    pub block_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Wall time including the final flush, microseconds.
    pub elapsed_us: u64,
}

/// Random writes over the whole device for a fixed time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveRound {
    /// Start, wall clock, microseconds since 1970-01-01 UTC.
    pub began_us: u64,
    /// Duration, microseconds.
    pub elapsed_us: u64,
    /// Writes completed.
    pub operations: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl DriveRound {
    /// Writes per second.
    pub fn rate(&self) -> f64 {
        self.operations as f64 * 1e6 / self.elapsed_us.max(1) as f64
    }
}
