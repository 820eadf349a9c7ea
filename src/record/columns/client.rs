//! Columns that identify a row, and those of the client.

use super::{ColumnDef, gauge, interval};

columns! {
    /// id of the run
    pub const RUN: ColumnDef = gauge("run", "").text();
    /// id of the case
    pub const CASE: ColumnDef = gauge("case", "").text();
    /// number of the trial within its case, from 1
    pub const TRIAL: ColumnDef = gauge("trial", "");
    /// seconds since the start of the measurement; row 0 holds the counters at its start
    pub const SECOND: ColumnDef = gauge("second", "s");
    /// wall-clock time of the row, microseconds since 1970-01-01 UTC
    pub const TIME_US: ColumnDef = gauge("time_us", "us");
}

/// Leading columns of every row: run, case, trial, second and time.
pub(crate) const KEY: [ColumnDef; 5] = [RUN, CASE, TRIAL, SECOND, TIME_US];

columns! {
    /// operations (transactions) completed in the second
    pub(crate) const CLIENT_DONE: ColumnDef = interval("client_done", "operations");
    /// operations that failed in the second
    pub const CLIENT_FAILED: ColumnDef = interval("client_failed", "operations");
    /// operations skipped because they were already too late (-R -L)
    pub const CLIENT_SKIPPED: ColumnDef = interval("client_skipped", "operations");
    /// operations slower than the latency limit (-L)
    pub const CLIENT_LATE: ColumnDef = interval("client_late", "operations");
    /// sum of the latencies of completed operations
    pub const CLIENT_LATENCY_US_SUM: ColumnDef = interval("client_latency_us_sum", "us");
    /// median latency of the second; absent if no operation completed
    pub const CLIENT_LATENCY_US_P50: ColumnDef = interval("client_latency_us_p50", "us");
    /// 95th percentile
    pub const CLIENT_LATENCY_US_P95: ColumnDef = interval("client_latency_us_p95", "us");
    /// 99th percentile
    pub const CLIENT_LATENCY_US_P99: ColumnDef = interval("client_latency_us_p99", "us");
    /// 99.9th percentile
    pub const CLIENT_LATENCY_US_P999: ColumnDef = interval("client_latency_us_p999", "us");
    /// slowest logged operation of the second
    pub(crate) const CLIENT_LATENCY_US_MAX: ColumnDef = interval("client_latency_us_max", "us");
    /// longest time in which none of the logged operations completed, that ended in the second or was going on at its end,
    /// to 1 ms
    pub(crate) const CLIENT_IDLE_US_MAX: ColumnDef = interval("client_idle_us_max", "us");
}

/// Columns of the client: operations completed in the second that ends with the row. Absent in row 0.
pub(crate) const CLIENT: [ColumnDef; 11] = [
    CLIENT_DONE,
    CLIENT_FAILED,
    CLIENT_SKIPPED,
    CLIENT_LATE,
    CLIENT_LATENCY_US_SUM,
    CLIENT_LATENCY_US_P50,
    CLIENT_LATENCY_US_P95,
    CLIENT_LATENCY_US_P99,
    CLIENT_LATENCY_US_P999,
    CLIENT_LATENCY_US_MAX,
    CLIENT_IDLE_US_MAX,
];
