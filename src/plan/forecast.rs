//! What a plan will cost on a machine and what the machine lacks for it: reported before anything is built.
//!
//! Only the type: the plan is pure, so the figures come from whoever knows the machine.

use crate::units::Bytes;
use serde::Serialize;

/// Time, space and requirements of a plan on one machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Forecast {
    /// Estimated duration of the whole run, microseconds.
    pub expected_us: u64,
    /// The same where adaptive blocks end at the first look.
    pub least_us: Option<u64>,
    /// Repeats of trials that others disturb, at most, and what they add to the duration then, microseconds.
    pub most_repeats: u32,
    pub repeats_us: u64,
    /// Images that are written in full, by folder.
    pub images: Vec<ImagesLine>,
    /// Drives that are brought to their steady state.
    pub drives: Vec<DriveLine>,
    /// What each workload is measured for, in words.
    pub windows: Vec<String>,
    /// Everything of which the run needs space.
    pub space: Vec<SpaceLine>,
    /// What is missing, for each case that lacks something.
    pub unmet: Vec<CaseUnmet>,
    /// What a person should know before the run.
    pub warnings: Vec<String>,
}

/// The images in one folder: written once and used by all trials in turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImagesLine {
    pub folder: String,
    pub images: usize,
    /// Bytes of all of them.
    pub bytes: Bytes,
    /// Bytes a second at which the folder took a short test; `None` where it takes none that leaves no trace.
    pub bytes_per_s: Option<f64>,
    /// How long writing them should take at that speed, microseconds; part of the whole.
    pub expected_us: Option<u64>,
}

/// A drive that is brought to its steady state, once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriveLine {
    pub drive: String,
    /// Whether it is an image file.
    pub is_image: bool,
    /// Bytes that are written in sequence; `None` where the drive is not there.
    pub written_bytes: Option<Bytes>,
    /// The speed assumed for that, bytes a second.
    pub bytes_per_s: u64,
    /// How long it should take at that speed, microseconds; part of the whole.
    pub fill_us: Option<u64>,
    /// Rounds of random writes that follow, at least and at most, and how long one takes, microseconds.
    pub least_rounds: usize,
    pub most_rounds: usize,
    pub round_us: u64,
}

impl DriveLine {
    /// What it takes with as few rounds as there can be, microseconds; as [`DriveLine::most_us`].
    pub fn least_us(&self) -> u64 {
        self.fill_us.unwrap_or(0).saturating_add(self.round_us.saturating_mul(self.least_rounds as u64))
    }

    /// What it takes with all rounds, microseconds, the fill included at the assumed speed where the size is known.
    pub fn most_us(&self) -> u64 {
        self.fill_us.unwrap_or(0).saturating_add(self.round_us.saturating_mul(self.most_rounds as u64))
    }
}

/// Space on something that can run out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpaceLine {
    /// What has the space: `/var/lib/pgstrata (ext4 on /dev/vda1)`, `memory`.
    pub what: String,
    /// The most that any moment of the run needs of it.
    pub needs: Bytes,
    /// What is free now; `None` where it is unknown.
    pub has: Option<Bytes>,
    /// Whether it fits, with what must stay free.
    pub fits: bool,
}

/// Something that a case needs and the machine lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseUnmet {
    pub case: String,
    /// What is missing: `the program mkfs.xfs`.
    pub what: String,
    /// What would bring it: `apt-get install xfsprogs`.
    pub hint: String,
}
