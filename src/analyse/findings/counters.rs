//! Cost of one operation at each layer, compared between cases like a rate.

use crate::analyse::findings::estimate::Estimate;
use crate::analyse::findings::outcome::PairOutcome;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostCounter {
    WalBytes,
    /// Flushes at the stack's devices per WAL sync.
    FlushesPerWalSync,
    DeviceWrites,
    DeviceBytes,
    /// CPU time of server, kernel and clients, microseconds.
    CpuUs,
}

impl CostCounter {
    pub const ALL: [Self; 5] =
        [Self::WalBytes, Self::FlushesPerWalSync, Self::DeviceWrites, Self::DeviceBytes, Self::CpuUs];
}

/// One counter for the cases of a ranking. All pairs are decided together, across durability classes, with at most 5 %
/// probability of any false difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterComparison {
    pub counter: CostCounter,
    /// Id of the case that the others are compared with.
    pub reference: String,
    /// In ranking order.
    pub rows: Vec<CounterRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterRow {
    pub case: String,
    pub label: String,
    /// Per operation, over trials.
    pub figure: Estimate,
    /// Relative to the reference, with the test's interval; `None` for the reference itself, and if either was 0 in a
    /// trial.
    pub ratio: Option<Estimate>,
    /// `None` for the reference itself.
    pub outcome: Option<PairOutcome>,
}
