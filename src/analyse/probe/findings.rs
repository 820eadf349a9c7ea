//! Findings of a probe: the only input of its renderers, and the output of `--json`.

use crate::analyse::findings::{CredibilityKind, LatencyFinding};
pub use crate::record::facts::{DeviceFacts, WriteCache};
pub use crate::record::probe::{Failure, Family, PlaceFacts, RowSpec, Segment, Slow, Way};
use serde::{Deserialize, Serialize};

/// Version of this document. 1: the first.
pub const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeFindings {
    pub format: u32,
    pub analysed_by: String,
    /// Start of the measurement, RFC 3339.
    pub started: String,
    pub elapsed_us: u64,
    /// Major version of the server that the findings refer to.
    pub server_major: u32,
    /// File size of the rows that pg_test_fsync has too.
    pub file_bytes: u64,
    pub place: PlaceFacts,
    /// Upper bounds of the bins of the histograms, nanoseconds, ascending: a bin is half a decade; the first also holds
    /// faster operations, the last slower ones.
    pub histogram: Vec<u64>,
    pub idle: Vec<IdleRates>,
    /// The rows in table order.
    pub rows: Vec<RowFinding>,
    /// Definition of a stall, with its numbers.
    pub stall_rule: String,
    /// Sync time by amount written.
    pub growth: Vec<GrowthFinding>,
    pub credibility: Credibility,
    /// For each `wal_sync_method` at default settings, the row equivalent to the server.
    pub server_equals: Vec<ServerRow>,
    pub recommendation: Recommendation,
    /// The folder ranked among devices with published figures.
    pub standing: FolderStanding,
    pub caveats: Vec<String>,
}

impl ProbeFindings {
    /// The row equivalent to a server at its defaults: PostgreSQL's own WAL writing.
    pub fn answer_row(&self) -> Option<&RowFinding> {
        let default = self.server_equals.iter().find(|row| row.default)?;
        self.rows.iter().find(|row| row.spec.id == default.row_id)
    }
}

/// Traffic of one device while the probe was idle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IdleRates {
    pub device: String,
    pub writes_per_s: f64,
    pub write_bytes_per_s: f64,
    /// `None` if flushes are not counted.
    pub flushes_per_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowFinding {
    pub spec: RowSpec,
    /// Relation to the writes of a server.
    pub server: Option<String>,
    /// Reason that the row is unavailable here.
    pub unavailable: Option<String>,
    pub failure: Option<Failure>,
    pub operations: u64,
    /// Time spent on the operations.
    pub measured_us: u64,
    /// Slices of these operations.
    pub slices: u32,
    pub rate: Option<RateFinding>,
    /// Mean number of commits that shared one sync; only for rows with several writers.
    pub commits_per_sync: Option<f64>,
    pub latency: Option<LatencyFinding>,
    /// Operations in each bin of the histogram.
    pub histogram: Vec<u64>,
    /// Stalls, slowest first, at most 16.
    pub stalls: Vec<Slow>,
    pub stalls_in_all: u64,
    /// Mean time to make a new segment, microseconds; not part of the rate.
    pub segment_us_mean: Option<f64>,
    pub segments_made: u64,
    /// Work of each device per operation, the filesystem's own first.
    pub work: Vec<WorkPerOperation>,
}

/// A rate with its 95 % interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateFinding {
    pub per_s: f64,
    pub low_per_s: Option<f64>,
    pub high_per_s: Option<f64>,
    /// Half the interval over the rate.
    pub relative_half_width: Option<f64>,
    /// True if that is within the requested precision.
    pub precise: bool,
    pub imprecise_because: Option<String>,
}

impl RateFinding {
    pub(super) fn interval(&self) -> Option<(f64, f64)> {
        self.low_per_s.zip(self.high_per_s)
    }
}

/// Work of one device per operation of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkPerOperation {
    pub device: String,
    /// Depth below the filesystem.
    pub depth: u32,
    pub writes_per_op: f64,
    pub bytes_per_op: f64,
    /// Flushes per operation; `None` if the kernel does not count them.
    pub flushes_per_op: Option<f64>,
    /// Flushes per sync, if the number of syncs differs from that of operations.
    pub flushes_per_sync: Option<f64>,
    /// Reason that flushes are not counted.
    pub flushes_uncounted: Option<String>,
    /// Flushes per operation minus those of others, estimated from the idle time.
    pub own_flushes_per_op: Option<f64>,
    /// Largest share of idle traffic in the row's writes or flushes.
    pub idle_share: Option<f64>,
    /// True if that share makes the counters worthless.
    pub worthless: bool,
    /// True if the write presumably carried FUA.
    pub fua_presumed: bool,
    pub words: String,
}

/// Sync time after an amount of writes: medians over the repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrowthFinding {
    pub written_bytes: u64,
    pub sync_ns: u64,
    /// Bytes per second of the sync; `None` if nothing was written.
    pub sync_bytes_per_s: Option<f64>,
    /// Bytes per second of the writes.
    pub write_bytes_per_s: Option<f64>,
    /// Share of the bytes seen at the devices below the filesystem meanwhile.
    pub reached_device: Option<f64>,
}

/// Credibility of the synced writes: a suspicion, never a conviction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Credibility {
    pub kind: CredibilityKind,
    /// A failed sync, reported before everything else.
    pub headline: Option<String>,
    pub reason: String,
    pub would_settle_it: String,
    /// What was seen at each level, the filesystem's own first: "vda: reports write back; 1.0 flush per \"fdatasync\"".
    pub levels: Vec<String>,
    pub sight_ends: Vec<String>,
    /// Rules that fired, deciding ones first.
    pub rules: Vec<FiredRule>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FiredRule {
    pub name: String,
    /// The credibility that it speaks for; `None` for information only.
    pub speaks_for: Option<CredibilityKind>,
    /// Measured value, if it is a number.
    pub number: Option<f64>,
    pub threshold: Option<f64>,
    pub unit: String,
    pub source: String,
    /// Text of the rule, one sentence.
    pub sentence: String,
}

/// Builds a fired rule; `measured` is a number, the threshold that it passed, and their unit.
pub(super) fn rule(
    name: &str,
    speaks_for: Option<CredibilityKind>,
    measured: Option<(f64, f64, &str)>,
    source: &str,
    sentence: String,
) -> FiredRule {
    let (number, threshold, unit) =
        measured.map_or((None, None, ""), |(number, threshold, unit)| (Some(number), Some(threshold), unit));
    let (name, unit, source) = (name.to_owned(), unit.to_owned(), source.to_owned());
    FiredRule { name, speaks_for, number, threshold, unit, source, sentence }
}

/// The row equivalent to a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerRow {
    pub wal_sync_method: String,
    pub row_id: String,
    /// True for the default on Linux.
    pub default: bool,
    pub sentence: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recommendation {
    /// The method; `None` for no recommendation.
    pub wal_sync_method: Option<String>,
    /// The line for postgresql.conf.
    pub line: Option<String>,
    pub reason: String,
    pub candidates: Vec<Candidate>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    pub wal_sync_method: String,
    pub excluded_because: Option<String>,
}

/// The folder ranked among devices with published figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FolderStanding {
    pub row_id: Option<String>,
    /// Fastest first, including the folder.
    pub entries: Vec<StandingEntry>,
}

/// A device, or the folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StandingEntry {
    /// True for the folder.
    pub here: bool,
    pub class: String,
    pub device: String,
    /// Operations per second of one 8 kB write with `fdatasync`.
    pub fdatasync_per_s: f64,
    pub source: String,
    pub note: String,
    /// True if the figure was not checked against its source.
    pub unverified: bool,
}
