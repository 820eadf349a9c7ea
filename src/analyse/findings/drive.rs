//! Drives that were brought to their steady state before anything was measured on them.

use serde::{Deserialize, Serialize};

/// One drive, or the part of one that stacks use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriveFinding {
    /// Path and serial number; folder and size of an image.
    pub drive: String,
    pub model: Option<String>,
    pub bytes: u64,
    /// What stood for SNIA's PURGE.
    pub purge: String,
    /// Bytes that were written in sequence, and bytes a second.
    pub fill_bytes: u64,
    pub fill_bytes_per_s: f64,
    /// Bytes of a random write, and how many were in flight.
    pub block_bytes: u64,
    pub depth: u32,
    /// Length that a round was to have, seconds.
    pub round_s: f64,
    pub rounds: Vec<DriveRoundFinding>,
    /// Number of the round after which it was steady; `None` where it never was.
    pub steady_after: Option<u64>,
    /// All that in a sentence.
    pub sentence: String,
}

/// A round, and what the window of five that ends with it does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DriveRoundFinding {
    /// Seconds from the start of the first round to the end of this one.
    pub until_s: f64,
    /// Writes a second.
    pub rate: f64,
    /// Largest less smallest figure of the window, share of its mean; `None` before the fifth round.
    pub range: Option<f64>,
    /// Move of the line fitted to the window, share of its mean.
    pub excursion: Option<f64>,
}
