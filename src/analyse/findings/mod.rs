//! What analysis concludes: the one thing that renderers see. Also what `--json` prints, so names are for the reader.

mod ageing;
mod backend_time;
mod capacity;
mod counters;
mod drive;
pub(crate) mod durability;
pub(crate) mod estimate;
mod full;
pub(crate) mod names;
mod outcome;
mod over_time;
mod power_cut;
pub(crate) mod probe;
mod ranking;
pub(crate) mod remark;
mod snapshots;
mod stage;
pub(crate) mod window;

// What was read back stands in findings as it was recorded; renderers know these types by this name only.
pub use crate::record::built::StackFacts;
pub use crate::record::case::TrialKey;
pub use crate::record::counts::StatementFigures;
pub use crate::record::event::Step;
pub use crate::record::facts::{DeviceFacts, Fits, HostFacts, ServerFacts, WriteCache};
pub use crate::record::merged::{LeftOut, MachineClass, MergeRecord, TakenRun};
pub use crate::record::probe::Family;
pub use crate::record::stack::{Input, Role};
pub use crate::record::trial::{Gap, StepTime};
pub use crate::record::verdict::{DeviceVerdict, StatesTried, Verdict};
pub use crate::record::window::{CheckpointDone, SettleRecord};

pub use ageing::{Ageing, AgeingPoint};
pub use backend_time::{BackendTime, InMemory, WaitShare};
pub use capacity::{Capacity, CapacityStep};
pub use counters::{Counter, CounterComparison, CounterRow};
pub use drive::{DriveFinding, DriveRoundFinding};
pub use durability::{Durability, DurabilityClass};
pub use estimate::Estimate;
pub use full::FullFinding;
pub use outcome::PairOutcome;
pub use over_time::{Heatmap, WaitOverTime, WaitsOverTime};
pub use power_cut::PowerCut;
pub use probe::{CredibilityKind, LatencyFinding};
pub use ranking::{BaselineComparison, ClassRanking, Decision, ProcedureKind, RankRow, RankTrial, RankedBy, Ranking};
pub use snapshots::SnapshotFinding;
pub use stage::{StageFinding, StageKind};
pub use window::{CaseWindow, CheckpointFinding, PagesWritten, Phase, Trend, TrialWindow};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of this document. 1: the first.
pub const FORMAT: u32 = 1;

/// Everything that is concluded from one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// [`FORMAT`].
    pub format: u32,
    /// What the run was.
    pub run: RunSummary,
    /// The answer in one paragraph: the parts of `answer`.
    pub headline: String,
    /// The same in parts, for pages.
    pub answer: Answer,
    /// The machines, in the order in which the run came to them; one, unless it was resumed elsewhere.
    pub machines: Vec<MachineFinding>,
    /// Rankings, the most important first.
    pub rankings: Vec<Ranking>,
    /// Figures over the ageing of stacks, where it varies.
    #[serde(default)]
    pub ageing: Vec<Ageing>,
    /// Drives that were brought to their steady state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drives: Vec<DriveFinding>,
    /// What a power cut would cost, where that was asked for: one for each stack with one server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub power_cuts: Vec<PowerCut>,
    /// One for each case, in the plan's order.
    pub cases: Vec<CaseFinding>,
    /// Trials that were measured, with their series.
    pub trials: Vec<TrialFinding>,
    /// Of trials that were measured twice because others disturbed them: the one that does not count.
    #[serde(default)]
    pub set_aside: Vec<SetAside>,
    /// Trials whose stack filled up.
    #[serde(default)]
    pub full: Vec<FullFinding>,
    /// Everything that was not run or not finished, and why.
    pub not_run: Vec<NotRun>,
    /// What a reader should know before believing a figure, of the run and of all its cases, the most important first.
    pub cautions: Vec<Caution>,
}

/// The answer of a run: what was asked, what came out, what to know beside it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// What was compared where: "On this machine (tpcb, clients=16)"; empty where nothing was measured.
    pub question: String,
    /// One sentence.
    pub answer: String,
    /// Sentences: less durable cases, storage's share, other rankings.
    pub notes: Vec<String>,
}

/// Something that a reader should know before believing a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Caution {
    /// What: "the data (308 to 313 MiB) fit into memory: reads came from the page cache".
    pub text: String,
    /// Ids of the cases that it holds for; empty = the run as a whole.
    pub cases: Vec<String>,
    /// What these cases have in common, where they are all there are of it: "all cases", "all cases with a server".
    pub scope: Option<String>,
}

/// The run in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    pub id: String,
    pub name: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// Version of pgstrata that measured.
    pub measured_by: String,
    /// Version of pgstrata that analysed.
    pub analysed_by: String,
    /// Seed of the order.
    pub seed: u64,
    pub blocks: u32,
    /// Where the plan's blocks were spread over machines: which of them these are, and where they come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_held: Option<String>,
    /// Trials planned, measured, not run, still to do.
    pub trials_planned: u32,
    pub trials_measured: u32,
    /// Not run.
    pub trials_not_run: u32,
    /// Of those measured: beside other programs or guests that took more of the CPUs than a quiet machine's.
    pub trials_disturbed: u32,
    /// Share of the wall time in which a workload was measured, 0 to 1; `None` for a run without an end.
    pub measured_share: Option<f64>,
    /// The plan as it was given.
    pub plan: String,
    /// What the baseline has in its axes.
    pub baseline: BTreeMap<String, String>,
    /// What it was merged from and what was left out, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeRecord>,
}

/// A machine with what ran on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineFinding {
    pub host: HostFacts,
    /// The trials that ran on it, those without figures included, in the run's order.
    pub trials: Vec<TrialKey>,
}

/// One case over its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseFinding {
    pub id: String,
    /// Where it lies in the matrix.
    pub axes: BTreeMap<String, String>,
    pub workload_kind: String,
    /// Operations a second that its clients kept to; `None` for a closed loop, where each client sends the next one when
    /// the last is done: its latencies are service times.
    pub fixed_rate: Option<f64>,
    /// Operations slower than this count as late, microseconds.
    pub latency_limit_us: Option<u64>,
    /// Share of the operations whose latency was logged, where it was not all: percentiles are of these, counts of all.
    pub log_sample: Option<f64>,
    pub trials: u32,
    /// Durability and its reason.
    pub durability: Durability,
    /// What a power cut would cost, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What was measured, the main one first.
    pub measures: Vec<MeasureFinding>,
    /// The highest rate within a latency limit, where that was searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    /// What its trials did once, in order, where they did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageFinding>,
    /// What snapshots did to its load, where it makes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<SnapshotFinding>,
    /// Steadiness of the seconds of all trials.
    pub steadiness: Option<Steadiness>,
    /// What one commit was at each layer.
    pub strata: Option<Strata>,
    pub backend_time: Option<BackendTime>,
    /// Where the data fit, at the largest trial.
    pub fits: Option<Fits>,
    /// Size of the database, bytes, at the largest trial.
    pub database_bytes: Option<u64>,
    /// Mean latency of statements, over trials.
    pub statements: Vec<StatementFigures>,
    /// What its windows held, where it has a server.
    pub window: Option<CaseWindow>,
    /// The probe's rows, where the case measured synced writes without a server.
    pub synced: Option<Synced>,
    /// What a reader should know, in this case's own figures: "the CPUs were 97 % busy".
    pub cautions: Vec<String>,
}

/// What the probes of a case's trials say together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Synced {
    /// How believable: each credibility that a trial came to.
    pub credibility: Vec<SyncedCredibility>,
    /// The rows, in the order of the probe.
    pub rows: Vec<SyncedRow>,
}

/// A credibility that some trials came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncedCredibility {
    pub kind: CredibilityKind,
    /// Why, in the words of the first of them.
    pub reason: String,
    pub trials: u32,
}

/// A row of the probe, over trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncedRow {
    /// Which part of the probe's table.
    pub family: Family,
    /// As the probe calls it.
    pub label: String,
    /// Operations a second.
    pub rate: Option<Estimate>,
    /// Why there is none.
    pub unavailable: Option<String>,
    /// Latencies of the first trial.
    pub latency: Option<LatencyFinding>,
    /// What the device that the filesystem stands on did for an operation of the first trial.
    pub device_work: Option<String>,
}

/// One measure of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasureFinding {
    /// `transactions`, `fdatasync`.
    pub name: String,
    /// `tps`, `ops/s`.
    pub unit: String,
    /// Geometric mean of the rates of all its trials, with the interval from this case's trials alone; `None` where it was
    /// not available.
    pub rate: Option<Estimate>,
    /// Why not.
    pub unavailable: Option<String>,
    /// Latencies from the merged histograms of all trials.
    pub latency: Option<Latency>,
    /// Operations over all trials.
    pub done: u64,
    pub failed: u64,
    /// Skipped as already late.
    pub skipped: u64,
    /// Later than the limit.
    pub late: u64,
    /// At a fixed rate: about so many fell due and were never sent, since no client was free until the window had ended.
    pub unsent: u64,
    /// Share of the operations due that were done and not late, 0 to 1, over trials.
    pub in_time: Option<Estimate>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean, microseconds.
    pub mean_us: f64,
    /// p50, p95, p99 and p99.9.
    pub percentiles: Vec<Percentile>,
    /// Slowest operation; `None` where not every one was logged.
    pub max_us: Option<u64>,
    /// The curve for the chart: (percentile 0 to 100, microseconds), rising, denser towards 100.
    pub curve: Vec<(f64, u64)>,
}

impl Latency {
    /// The percentile of this name.
    #[must_use]
    pub fn percentile(&self, name: &str) -> Option<&Percentile> {
        self.percentiles.iter().find(|percentile| percentile.name == name)
    }
}

/// A percentile of latency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// `p99.9`.
    pub name: String,
    /// 99.9.
    pub percent: f64,
    /// Mean of the logarithms of the trials' own, microseconds; `None` unless every trial has one.
    pub over_trials: Option<Estimate>,
    /// Why not.
    pub unavailable: Option<String>,
    /// The trials' own: number of the trial, microseconds.
    pub trials: Vec<(u32, u64)>,
    /// Of the operations done in all trials together, microseconds: its tail may be one trial's alone.
    pub merged_us: Option<u64>,
    /// Against the baseline.
    pub comparison: Option<PercentileRatio>,
}

/// A percentile over that of the baseline, block by block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PercentileRatio {
    /// Id of the baseline case.
    pub baseline: String,
    pub ratio: Estimate,
    /// Whether the interval excludes 1.
    pub outcome: PairOutcome,
}

/// Rate stability by second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Steadiness {
    /// Whole seconds looked at.
    pub seconds: u64,
    /// Standard deviation of operations a second over their mean.
    pub coefficient_of_variation: f64,
    /// Seconds with no operation.
    pub seconds_at_zero: u64,
    /// Seconds under a tenth of the median second.
    pub seconds_under_tenth: u64,
    /// Seconds under half of the median second.
    pub seconds_under_half: u64,
    /// Most seconds in a row with no operation.
    pub longest_zero_s: u64,
    /// Longest time without a completed operation, microseconds, to 1 ms; `None` where not every one was seen by itself.
    pub longest_idle_us: Option<u64>,
    /// Longest single operation, microseconds: the longest stall that a client saw; `None` where not every one was logged.
    pub longest_stall_us: Option<u64>,
    /// Trial and second of that.
    pub longest_stall_at: Option<(u32, u64)>,
}

/// What one operation of the client was at each layer, over all trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Strata {
    /// The sentence: "one commit = 1.02 device writes of 16.4 KiB + 0.5 flushes".
    pub sentence: String,
    /// Client operations that it rests on.
    pub operations: u64,
    /// WAL bytes per commit.
    pub wal_bytes: Option<f64>,
    /// WAL records per commit.
    pub wal_records: Option<f64>,
    /// Full-page images per commit.
    pub full_page_images: Option<f64>,
    /// Syncs of the WAL per commit.
    pub wal_syncs: Option<f64>,
    /// Transactions that wrote, subtransactions among them, for each operation.
    pub writing: Option<f64>,
    /// Devices, the data's first, from top to bottom.
    pub devices: Vec<DeviceStrata>,
    /// The devices that the stack was built on (where it was a folder, the first below it), added up; `None` where none of
    /// them is counted.
    pub at_stack_devices: Option<DeviceStrata>,
    /// Bytes written to the lowest device for each byte of WAL.
    pub write_amplification: Option<f64>,
    /// CPU time of the whole machine but other programs' per operation, microseconds: server, kernel and clients.
    pub cpu_us: Option<f64>,
    /// What the file below its images added, where it stands on images whose device below is counted.
    pub image: Option<ImageCost>,
    /// Its commits against the synced writes that the stack of its WAL does alone, where the run measured both.
    pub flush_share: Option<FlushShare>,
}

/// What was written below the loop devices of a case beyond what reached them: the filesystem that holds the image
/// allocates and keeps its own journal. What other programs wrote to that device is counted along.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageCost {
    /// The sentence, where that is above noise: "the file below the image added 0.10 writes and 1.2 KiB a commit".
    pub sentence: Option<String>,
    /// Further writes per operation; below 0 where writes were merged.
    pub writes: Estimate,
    /// Further bytes per operation.
    pub bytes: Estimate,
}

/// Which part of the synced writes that one writer gets from a stack without PostgreSQL arrived as commits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlushShare {
    /// The sentence: "654 commits a second by 1 client are 15 % of the 4368 fdatasync/s that one writer gets ...".
    pub sentence: String,
    /// Clients of the case: one flush can serve the commits of several.
    pub clients: u64,
    /// Commits a second (transactions, where it is not known that each commits).
    pub commits: Estimate,
    /// `wal_sync_method` in force.
    pub method: String,
    /// Synced writes a second by that method, from a single writer.
    pub syncs: Estimate,
    /// Id of the case that they were measured in.
    pub sync_case: String,
    /// Commits over synced writes: 0.57 are 57 %; above 1 where flushes were shared.
    pub share: Estimate,
}

/// What one operation was at one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceStrata {
    /// Name of its node in the stack: `loop`, `vda`.
    pub node: String,
    /// Kernel name (`loop`-numbers may differ between trials: then the class, `loop`).
    pub device: String,
    /// Writes per operation.
    pub writes: Option<f64>,
    /// Bytes per write.
    pub bytes_per_write: Option<f64>,
    /// Bytes written per operation.
    pub write_bytes: Option<f64>,
    /// Flushes per operation.
    pub flushes: Option<f64>,
    /// Reads per operation.
    pub reads: Option<f64>,
    /// Share of the time that the device was busy, 0 to 1.
    pub busy: Option<f64>,
    /// What it did a second.
    #[serde(default)]
    pub io: DeviceIo,
}

/// What a device did while it was measured; `None` where it does not count that, and of latencies, where there was nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceIo {
    pub reads_per_s: Option<f64>,
    /// 10^6 bytes a second.
    pub read_mb_per_s: Option<f64>,
    /// From the request's start to its end, as the kernel counts it.
    pub read_ms_mean: Option<f64>,
    pub writes_per_s: Option<f64>,
    pub write_mb_per_s: Option<f64>,
    pub write_ms_mean: Option<f64>,
    pub flushes_per_s: Option<f64>,
    pub flush_ms_mean: Option<f64>,
    /// Requests in flight, mean over the time.
    pub queue_depth_mean: Option<f64>,
}

/// The seconds of one trial in which no operation completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZeroSeconds {
    /// Whole seconds that are known.
    pub seconds: u64,
    /// Those in which no operation completed.
    pub at_zero: u64,
    /// The longest run of them, seconds.
    pub longest_s: u64,
}

/// One trial with its series, downsampled so that a report stays small and stalls survive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialFinding {
    pub case: String,
    pub trial: u32,
    /// When it began, RFC 3339.
    pub started: String,
    /// Mean rate of its main measure.
    pub rate: Option<f64>,
    /// Operations a second.
    pub throughput: Option<Series>,
    /// Slowest operation of each second, milliseconds.
    pub latency_ms_max: Option<Series>,
    /// Its seconds without an operation; none where measures take turns, or where a search or a crash makes them.
    pub zero_seconds: Option<ZeroSeconds>,
    /// Telemetry series, each with its title and unit.
    pub telemetry: Vec<Series>,
    /// Latencies over time.
    pub heatmap: Option<Heatmap>,
    /// What its backends were doing over time, where it has a server.
    pub waits: Option<WaitsOverTime>,
    /// The processes that used most CPU: name, mean share of one CPU.
    pub processes: Vec<(String, f64)>,
    /// Holes in the telemetry.
    pub gaps: Vec<Gap>,
    pub steps: Vec<StepTime>,
    /// Kernel knobs of the machine in force.
    pub knobs: BTreeMap<String, String>,
    /// What was really there.
    pub stack: Option<StackFacts>,
    pub server: Option<ServerFacts>,
    /// Cache state, origin of the data.
    pub cache_state: Option<String>,
    /// How it waited for a quiet machine.
    pub settle: Option<SettleRecord>,
    /// What its window held, where it has a server.
    pub window: Option<TrialWindow>,
    /// The tool's own figures beside ours.
    pub checks: Vec<CrossCheck>,
    /// Notes of the trial.
    pub notes: Vec<String>,
}

/// A trial that does not count: a disturbed one whose repeat was not disturbed, or a repeat in vain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetAside {
    pub case: String,
    pub trial: u32,
    /// When it began, RFC 3339.
    pub started: String,
    /// Whether it is the repeat.
    pub is_repeat: bool,
    /// Mean rate of its main measure.
    pub rate: Option<f64>,
    /// CPU time of other programs, in CPUs.
    pub others: Option<f64>,
    /// Share of the CPU time that other guests got.
    pub stolen: Option<f64>,
    /// What disturbed it, or why the repeat failed.
    pub why: String,
}

/// A count of the tool that drove the load beside our own of the same thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrossCheck {
    /// What: `transactions`, `latency_ms_mean`.
    pub what: String,
    /// As the tool's summary has it.
    pub tool: f64,
    /// As pgstrata counted it.
    pub own: f64,
    /// Whether they agree within `tolerance`.
    pub agrees: bool,
    /// Relative tolerance; 0 = exactly.
    pub tolerance: f64,
}

/// A series of one trial: buckets of whole seconds with the least and the most of each, so that no stall is lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What it shows: "WAL written".
    pub title: String,
    /// Unit: `tps`, `MiB/s`, `%`.
    pub unit: String,
    /// The chart that it belongs to: `latency`, `device_queue`, `cpu`, ...; all series of a group have one meaning and unit.
    pub group: String,
    /// Seconds in a bucket; 1 = nothing was thrown away.
    pub bucket_s: u32,
    /// Least of each bucket; `None` = a gap.
    pub min: Vec<Option<f32>>,
    /// Most of each bucket; empty when `bucket_s` is 1 (same as `min`).
    pub max: Vec<Option<f32>>,
}

/// A trial without figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotRun {
    pub case: String,
    /// Trials concerned (same reason).
    pub trials: Vec<u32>,
    /// In which step it ended; `None` = not run yet, or damaged since.
    pub step: Option<String>,
    pub reason: String,
    /// How to fix it.
    pub hint: Option<String>,
}
