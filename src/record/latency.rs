//! `latency.hist`: latencies of the measures, by interval.

use hdrhistogram::Histogram;

/// Latencies of one measure in a part of the measurement. Intervals of a measure do not overlap; together they hold
/// every operation that it completed. There is no interval without completed operations.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyInterval {
    /// Name of the measure.
    pub measure: String,
    /// Start, microseconds after the first operation began.
    pub start_us: u64,
    /// Length, microseconds.
    pub length_us: u64,
    /// Latencies of the operations that ended in it, microseconds.
    pub latencies: Histogram<u64>,
}
