//! What a trial did over its time beside single series: its latencies, and what its backends were doing.

use serde::{Deserialize, Serialize};

/// Operations of the main measure by time and latency: a histogram of latencies for each stretch of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heatmap {
    /// Seconds in a column; the first column begins with the measurement.
    pub bucket_s: u32,
    /// Rows for each power of ten: row r holds latencies from 10^(r / rows) microseconds up to those of the next row.
    pub rows_per_decade: u32,
    /// For each column the first row that has an operation, and the operations in that row and the following ones.
    pub columns: Vec<(u32, Vec<u64>)>,
}

/// What the clients' backends were doing: how many of them, on average over the samples of each stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitsOverTime {
    /// Seconds in a bucket; the first begins with the measurement.
    pub bucket_s: u32,
    /// The most frequent waits, the most frequent first.
    pub waits: Vec<WaitOverTime>,
    /// All others together, as `backends` of a wait.
    pub others: Vec<Option<f32>>,
}

/// One wait over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitOverTime {
    /// `IO`, `LWLock`, `Lock`, `CPU`, `Client`, ...
    pub class: String,
    /// `WALSync`, ...
    pub event: String,
    /// Mean number of backends in it; `None` where no sample was taken.
    pub backends: Vec<Option<f32>>,
}
