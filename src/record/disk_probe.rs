//! A moment of synced writes to the filesystem below a stack's images.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Synced writes of one page in turn, each overwriting allocated blocks, for a moment: whether the machine's storage is in
/// its usual state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskProbe {
    /// Folder of the images; the probe was on its filesystem.
    pub folder: PathBuf,
    /// Wall clock of its start, microseconds since 1970.
    pub wall_us: u64,
    /// Writes that were synced.
    pub flushes: u64,
    /// Time of these, microseconds.
    pub elapsed_us: u64,
    /// CPU time that programs outside of the run took meanwhile, microseconds; `None` if it could not be read.
    pub others_cpu_us: Option<u64>,
    /// Time in which they took it, with the making of the probe's file, microseconds.
    pub whole_us: Option<u64>,
}

impl DiskProbe {
    /// Synced writes a second.
    pub fn rate(&self) -> f64 {
        self.flushes as f64 * 1e6 / self.elapsed_us.max(1) as f64
    }
}
