//! Drives brought to their steady state before being measured.

use serde::{Deserialize, Serialize};

/// A drive, or the part of it that stacks use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriveFinding {
    /// Path and serial number, or folder and size of an image.
    pub drive: String,
    pub model: Option<String>,
    pub bytes: u64,
    /// Substitute for SNIA's PURGE.
    pub purge: String,
    /// Bytes written sequentially, and the rate in bytes per second.
    pub fill_bytes: u64,
    pub fill_bytes_per_s: f64,
    /// Size of a random write, and the number in flight.
    pub block_bytes: u64,
    pub depth: u32,
    /// Planned length of a round, seconds.
    pub round_s: f64,
    pub rounds: Vec<DriveRoundFinding>,
    /// Round after which the drive was steady; `None` if it never was.
    pub steady_after: Option<u64>,
    /// Summary in one sentence.
    pub sentence: String,
}

/// A round, with the figures of the five-round window that ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DriveRoundFinding {
    /// Seconds from the start of the first round to the end of this one.
    pub until_s: f64,
    /// Writes per second.
    pub rate: f64,
    /// Largest less smallest figure in the window, as a share of its mean; `None` before the fifth round.
    pub range: Option<f64>,
    /// Change of the line fitted to the window, as a share of its mean.
    pub excursion: Option<f64>,
}
