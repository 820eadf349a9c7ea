//! What was done to a drive before stacks were built on it, so that it is measured in its steady state.

use serde::{Deserialize, Serialize};

/// Length of a round by SNIA's specification, microseconds.
pub const SNIA_ROUND_US: u64 = 60_000_000;

/// One drive, or the part of one that a stack uses; prepared once in a run and used by its trials in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriveRecord {
    /// By this a run knows it again: path and serial number, the part of it; folder and size of an image.
    pub key: String,
    /// Node of the stack that was to be built on it.
    pub node: String,
    /// Device that was written.
    pub device: String,
    /// Model of the drive as it tells it.
    pub model: Option<String>,
    /// Whether it is an image file: what was written went through the filesystem that holds it.
    pub is_image: bool,
    /// Size of the device, bytes; all of it was written.
    pub bytes: u64,
    /// How it was emptied before.
    pub purge: Purge,
    /// What was written in sequence.
    pub fill: Fill,
    /// Bytes of one random write.
    pub block_bytes: u64,
    /// Random writes that were in flight at a time.
    pub depth: u32,
    /// How long a round was to be, microseconds.
    pub round_us: u64,
    /// Rounds that there could be at most.
    pub most_rounds: u32,
    /// The rounds, in order and without a pause between them.
    pub rounds: Vec<DriveRound>,
    /// When it began, wall clock, microseconds since 1970-01-01 UTC.
    pub began_us: u64,
    /// When it ended.
    pub ended_us: u64,
}

/// What stands for SNIA's PURGE, after which a drive is as it left the factory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Purge {
    /// A secure discard of the whole device (BLKSECDISCARD).
    SecureDiscard,
    /// A discard of the whole device (BLKDISCARD); the drive decides what a discard erases.
    Discard,
    /// Nothing.
    None {
        /// Why.
        why: String,
    },
}

/// Sequential writes over the whole device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// How often the device was written over.
    pub times: u32,
    /// Bytes of one write.
    pub block_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Wall time with the flush at its end, microseconds.
    pub elapsed_us: u64,
}

/// Random writes over the whole device for some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveRound {
    /// When it began, wall clock, microseconds since 1970-01-01 UTC.
    pub began_us: u64,
    /// How long it was, microseconds.
    pub elapsed_us: u64,
    /// Writes that were completed in it.
    pub operations: u64,
    /// Bytes of these.
    pub written_bytes: u64,
}

impl DriveRound {
    /// Writes a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.operations as f64 * 1e6 / self.elapsed_us.max(1) as f64
    }
}
