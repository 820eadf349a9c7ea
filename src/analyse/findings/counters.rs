//! What one operation cost at each layer, compared between cases like a rate.

use crate::analyse::findings::estimate::Estimate;
use crate::analyse::findings::outcome::PairOutcome;
use serde::{Deserialize, Serialize};

/// A counter per operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    WalBytes,
    /// Flushes at the devices of the stack for each sync of the WAL.
    FlushesPerWalSync,
    DeviceWrites,
    DeviceBytes,
    /// CPU time of server, kernel and clients, microseconds.
    CpuUs,
}

impl Counter {
    pub const ALL: [Counter; 5] =
        [Counter::WalBytes, Counter::FlushesPerWalSync, Counter::DeviceWrites, Counter::DeviceBytes, Counter::CpuUs];
}

/// One counter over the cases of a ranking. All its pairs are decided together, whatever their durability class, with at most 5 %
/// for any false difference among them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterComparison {
    pub counter: Counter,
    /// Id of the case that the others are compared with.
    pub reference: String,
    /// In the order of the ranking.
    pub rows: Vec<CounterRow>,
}

/// One case of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterRow {
    pub case: String,
    pub label: String,
    /// Per operation, over trials.
    pub figure: Estimate,
    /// Over the reference's, with the interval of the test; `None` of the reference itself, and where one of both was 0 in a
    /// trial.
    pub ratio: Option<Estimate>,
    /// Against the reference; `None` of itself.
    pub outcome: Option<PairOutcome>,
}
