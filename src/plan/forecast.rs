//! Cost of a plan on a machine, and the machine's missing requirements: reported before anything is built.
//!
//! Only the type: the plan is pure, so the figures come from whoever knows the machine.

use crate::units::Bytes;
use serde::Serialize;

/// Time, space and requirements of a plan on one machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Forecast {
    /// Estimated duration of the whole run, microseconds.
    pub expected_us: u64,
    /// The same if adaptive blocks end at the first look.
    pub least_us: Option<u64>,
    /// Maximum repeats of disturbed trials, and what they add to the duration, microseconds.
    pub most_repeats: u32,
    pub repeats_us: u64,
    /// Cases that stand at once and are measured in turns, by id.
    pub turns: Vec<String>,
    /// Images that are written in full, by folder.
    pub images: Vec<ImagesLine>,
    /// Drives that are brought to their steady state.
    pub drives: Vec<DriveLine>,
    /// Measurement windows of each workload, as text.
    pub windows: Vec<String>,
    /// Space that the run needs.
    pub space: Vec<SpaceLine>,
    /// Missing requirements, for each case that has some.
    pub unmet: Vec<CaseUnmet>,
    /// Warnings for the user before the run.
    pub warnings: Vec<String>,
}

/// The images in one folder: written once and used by all trials in turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImagesLine {
    pub folder: String,
    pub images: usize,
    /// Total size.
    pub bytes: Bytes,
    /// Write speed of the folder in a short test, bytes per second; `None` if it cannot be tested without leaving a
    /// trace.
    pub bytes_per_s: Option<f64>,
    /// Time to write them at that speed, microseconds; part of the whole.
    pub expected_us: Option<u64>,
}

/// A drive that is brought to its steady state, once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriveLine {
    pub drive: String,
    pub is_image: bool,
    /// Bytes written sequentially; `None` if the drive is absent.
    pub written_bytes: Option<Bytes>,
    /// Assumed speed of those writes, bytes per second.
    pub bytes_per_s: u64,
    /// Time to write them at that speed, microseconds; part of the whole.
    pub fill_us: Option<u64>,
    /// Minimum and maximum rounds of random writes that follow, and the duration of one, microseconds.
    pub least_rounds: usize,
    pub most_rounds: usize,
    pub round_us: u64,
}

impl DriveLine {
    /// Duration with the minimum of rounds, microseconds; see [`DriveLine::most_us`].
    pub fn least_us(&self) -> u64 {
        self.fill_us.unwrap_or(0).saturating_add(self.round_us.saturating_mul(self.least_rounds as u64))
    }

    /// Duration with all rounds, microseconds; includes the fill at the assumed speed if the size is known.
    pub fn most_us(&self) -> u64 {
        self.fill_us.unwrap_or(0).saturating_add(self.round_us.saturating_mul(self.most_rounds as u64))
    }
}

/// Space on something that can run out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpaceLine {
    /// Owner of the space: `/var/lib/pgstrata (ext4 on /dev/vda1)`, `memory`.
    pub what: String,
    /// Peak need during the run.
    pub needs: Bytes,
    /// Free space now; `None` if unknown.
    pub has: Option<Bytes>,
    /// True if it fits, including the reserve that must stay free.
    pub fits: bool,
}

/// A requirement of a case that the machine does not meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseUnmet {
    pub case: String,
    /// Missing item: `the program mkfs.xfs`.
    pub what: String,
    /// Remedy: `apt-get install xfsprogs`.
    pub hint: String,
}
