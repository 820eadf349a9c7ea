//! What the analysis of a probe concludes: the one thing that its renderers see, and what `--json` prints.

use crate::analyse::findings::{CredibilityKind, LatencyFinding};
pub use crate::record::facts::{DeviceFacts, MountFacts, WriteCache};
pub use crate::record::probe::{Failure, Family, PlaceFacts, RowSpec, Segment, Slow, Way};
use serde::{Deserialize, Serialize};

/// Version of this document. 1: the first.
pub const FORMAT: u32 = 1;

/// Everything that is concluded from one probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeFindings {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that measured.
    pub measured_by: String,
    /// Version of pgstrata that analysed.
    pub analysed_by: String,
    /// When the measurement began, RFC 3339.
    pub started: String,
    /// Seed of the order of slices.
    pub seed: u64,
    /// Precision asked for: half an interval over its rate.
    pub precision: f64,
    /// Time allowed, microseconds.
    pub budget_us: u64,
    /// Time taken, microseconds.
    pub elapsed_us: u64,
    /// Major version of the server that the findings speak of.
    pub server_major: u32,
    /// Size of the file of the rows that pg_test_fsync has too.
    pub file_bytes: u64,
    /// Size of a WAL segment.
    pub segment_bytes: u64,
    pub place: PlaceFacts,
    /// Bounds of every row's histogram.
    pub histogram: HistogramScale,
    /// Share of the time in which the probe's own thread, and anybody on the machine, waited for a CPU.
    pub cpu: CpuShares,
    /// What the devices did while the probe did nothing.
    pub idle: Vec<IdleTraffic>,
    /// The rows in the order of the table.
    pub rows: Vec<RowFinding>,
    /// What counts as a stall, with its numbers.
    pub stall_rule: String,
    /// Time of a sync after how much was written.
    pub growth: Vec<GrowthFinding>,
    /// How believable it is.
    pub credibility: Credibility,
    /// For each `wal_sync_method` at default settings, the row that equals the server.
    pub server_equals: Vec<ServerRow>,
    /// Which `wal_sync_method` to set.
    pub recommendation: Recommendation,
    /// The folder among devices whose figures were published.
    pub standing: Standing,
    /// What a reader should know before believing a figure.
    pub caveats: Vec<String>,
}

impl ProbeFindings {
    /// The row that equals a server at its defaults: PostgreSQL's own WAL writing.
    #[must_use]
    pub fn answer_row(&self) -> Option<&RowFinding> {
        let default = self.server_equals.iter().find(|row| row.default)?;
        self.rows.iter().find(|row| row.spec.id == default.row_id)
    }
}

/// Waits for a CPU while the rows ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuShares {
    /// Share of the time in which the probe's own thread waited; `None` where the kernel does not tell.
    pub own: Option<f64>,
    /// Share of the time in which some process of the machine waited.
    pub some: Option<f64>,
}

/// Bounds of the histograms: a bin is a half of a decade; the first holds what is faster too, the last what is slower.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistogramScale {
    /// Lower bound of the first bin.
    pub low_ns: u64,
    /// Upper bound of the last bin.
    pub high_ns: u64,
    /// Upper bounds of the bins, ascending.
    pub upper_ns: Vec<u64>,
}

/// Traffic of one device while the probe did nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IdleTraffic {
    pub device: String,
    /// Writes a second.
    pub writes_per_s: f64,
    /// Bytes written a second.
    pub write_bytes_per_s: f64,
    /// Flushes a second; `None` where they are not counted.
    pub flushes_per_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowFinding {
    pub spec: RowSpec,
    /// What a server has to do with it.
    pub server: Option<String>,
    /// Why it is not available here.
    pub unavailable: Option<String>,
    /// How it ended early.
    pub failure: Option<Failure>,
    pub operations: u64,
    /// Time in which they were.
    pub measured_us: u64,
    /// Slices that they ran in.
    pub slices: u32,
    /// Operations a second.
    pub rate: Option<RateFinding>,
    /// Commits that shared one sync, on average; only for rows with several writers.
    pub commits_per_sync: Option<f64>,
    /// How long operations took.
    pub latency: Option<LatencyFinding>,
    /// Operations in each bin of the histogram.
    pub histogram: Vec<u64>,
    /// Second by second, those with an operation only.
    pub seconds: Vec<SecondFinding>,
    /// Its stalls, the slowest first, at most 16.
    pub stalls: Vec<Slow>,
    /// How many stalls there were in all.
    pub stalls_in_all: u64,
    /// Mean time to make a new segment, microseconds; not in the rate.
    pub segment_us_mean: Option<f64>,
    /// Segments that were made.
    pub segments_made: u64,
    /// What each device did for an operation, the filesystem's own first.
    pub work: Vec<DeviceWork>,
}

/// A rate with its 95 % interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateFinding {
    /// Operations a second.
    pub per_s: f64,
    pub low_per_s: Option<f64>,
    pub high_per_s: Option<f64>,
    /// Half the interval over the rate.
    pub relative_half_width: Option<f64>,
    /// Whether that is within the precision that was asked for.
    pub precise: bool,
    /// Why not.
    pub imprecise_because: Option<String>,
}

/// One second of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondFinding {
    /// Second of the measurement, from 0.
    pub second: u32,
    /// Operations that ended in it.
    pub operations: u64,
    pub p50_ns: u64,
    /// 99th percentile; from 100 operations on.
    pub p99_ns: Option<u64>,
    pub max_ns: u64,
}

/// What one device did for one operation of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceWork {
    pub device: String,
    /// Depth below the filesystem.
    pub depth: u32,
    /// Writes for an operation.
    pub writes_per_op: f64,
    /// Bytes written for an operation.
    pub bytes_per_op: f64,
    /// Flushes for an operation; `None` where the kernel does not count them.
    pub flushes_per_op: Option<f64>,
    /// Flushes for a sync, where syncs are another number than operations.
    pub flushes_per_sync: Option<f64>,
    /// Why flushes are not counted.
    pub flushes_uncounted: Option<String>,
    /// Flushes for an operation, those of others taken off as they were seen while the probe did nothing.
    #[serde(default)]
    pub own_flushes_per_op: Option<f64>,
    /// The greatest share that idle traffic has of the row's writes or flushes.
    pub idle_share: Option<f64>,
    /// Whether that share makes the counters worthless.
    pub worthless: bool,
    /// Whether the write presumably carried FUA.
    pub fua_presumed: bool,
    /// The whole in words.
    pub words: String,
}

/// Time of a sync after how much was written: medians over the repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrowthFinding {
    /// Bytes written before.
    pub written_bytes: u64,
    /// How often it was tried.
    pub repeats: u32,
    /// Time of the writes.
    pub write_ns: u64,
    /// Time of the sync.
    pub sync_ns: u64,
    /// Bytes for each second of the sync; `None` for nothing written.
    pub sync_bytes_per_s: Option<f64>,
    /// Bytes for each second of the writes.
    pub write_bytes_per_s: Option<f64>,
    /// Share of the bytes that the devices the filesystem stands on were seen to write meanwhile.
    pub reached_device: Option<f64>,
}

/// How believable the synced writes are: a suspicion, never a conviction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Credibility {
    pub kind: CredibilityKind,
    /// A failed sync, said before all else.
    pub headline: Option<String>,
    pub reason: String,
    /// How to verify it.
    pub would_settle_it: String,
    /// Levels at which flushes were looked for, the filesystem's own first.
    pub levels: Vec<LevelSeen>,
    pub sight_ends: Vec<String>,
    /// Rules that fired, those that decided first.
    pub rules: Vec<FiredRule>,
}

/// What was seen of flushes at one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelSeen {
    pub device: String,
    /// Depth below the filesystem.
    pub depth: u32,
    /// What it says of its cache.
    pub write_cache: Option<WriteCache>,
    /// In words: "1.0 flush per fdatasync", "says write through: the kernel sends it none".
    pub words: String,
}

/// A rule that fired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FiredRule {
    pub name: String,
    /// The credibility that it speaks for; `None` for one that only informs.
    pub speaks_for: Option<CredibilityKind>,
    /// What was measured, where it is a number.
    pub number: Option<f64>,
    /// What it was compared with.
    pub threshold: Option<f64>,
    pub unit: String,
    /// Where the threshold comes from.
    pub source: String,
    /// The whole as a sentence.
    pub sentence: String,
}

/// The row that a server equals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerRow {
    /// `wal_sync_method`.
    pub wal_sync_method: String,
    /// Id of the row.
    pub row_id: String,
    /// Whether it is the default of Linux.
    pub default: bool,
    pub sentence: String,
}

/// Which `wal_sync_method` to set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recommendation {
    /// The method; `None` where none is recommended.
    pub wal_sync_method: Option<String>,
    /// The line for postgresql.conf.
    pub line: Option<String>,
    pub reason: String,
    pub candidates: Vec<Candidate>,
}

/// One method that was compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// `wal_sync_method`.
    pub wal_sync_method: String,
    pub row_id: String,
    /// Operations a second.
    pub per_s: Option<f64>,
    /// Why it is out of the question.
    pub excluded_because: Option<String>,
}

/// The folder among devices with published figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Id of the row that is compared.
    pub row_id: Option<String>,
    /// Fastest first, the folder in its place.
    pub entries: Vec<StandingEntry>,
}

/// A device, or the folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StandingEntry {
    /// Whether it is the folder.
    pub here: bool,
    /// What kind of device.
    pub class: String,
    pub device: String,
    /// `fdatasync` after one write of 8 kB, operations a second.
    pub fdatasync_per_s: f64,
    pub source: String,
    /// What else to know.
    pub note: String,
    /// Whether nobody checked the source's figure.
    pub unverified: bool,
}
