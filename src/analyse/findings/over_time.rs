//! A trial over time beyond single series: its latencies and the activity of its backends.

use serde::{Deserialize, Serialize};

/// Operations of the main measure by time and latency: a latency histogram per time bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heatmap {
    /// Seconds per column; the first column begins with the measurement.
    pub bucket_s: u32,
    /// Rows per power of ten: row r holds latencies from 10^(r / rows) microseconds up to the start of the next row.
    pub rows_per_decade: u32,
    /// For each column the first row with an operation, and the number of operations in that row and the following
    /// ones.
    pub columns: Vec<(u32, Vec<u64>)>,
}

/// Activity of the clients' backends: mean number in each wait, per time bucket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitsOverTime {
    /// Seconds per bucket; the first begins with the measurement.
    pub bucket_s: u32,
    /// Most frequent first.
    pub waits: Vec<WaitOverTime>,
    /// Sum of all other waits, in the form of `WaitOverTime::backends`.
    pub others: Vec<Option<f32>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitOverTime {
    /// `IO`, `LWLock`, `Lock`, `CPU`, `Client`, ...
    pub class: String,
    /// `WALSync`, ...
    pub event: String,
    /// Mean number of backends in this wait, per bucket; `None` if no sample was taken.
    pub backends: Vec<Option<f32>>,
}
