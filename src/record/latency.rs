//! `latency.hist`: latencies of the measures, interval by interval.

use hdrhistogram::Histogram;

/// Latencies of one measure in a part of the measurement. The intervals of a measure follow each other without
/// overlap; all together hold each operation that it completed. Where none was completed there is no interval.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyInterval {
    /// Name of the measure.
    pub measure: String,
    /// Where it begins, microseconds since the first operation began.
    pub start_us: u64,
    /// How long it is, microseconds.
    pub length_us: u64,
    /// Latencies of the operations that ended in it, microseconds.
    pub latencies: Histogram<u64>,
}
