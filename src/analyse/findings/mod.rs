//! Results of the analysis: the only input of the renderers, and the document that `--json` prints, so names are chosen
//! for readers.

mod counters;
pub(crate) mod durability;
pub(crate) mod estimate;
pub(crate) mod groups;
pub(crate) mod lists;
pub(crate) mod names;
mod of_case;
mod of_run;
mod outcome;
mod over_time;
pub(crate) mod probe;
mod ranking;
pub(crate) mod remark;
mod turns;
pub(crate) mod window;

// Facts that were read back appear in findings as recorded; renderers know these types only under this name.
pub use crate::record::built::StackFacts;
pub use crate::record::case::TrialKey;
pub use crate::record::counts::StatementFigures;
pub use crate::record::cut::CutRecord;
pub use crate::record::event::Step;
pub use crate::record::facts::{DeviceFacts, Fits, HostFacts, ServerFacts, WriteCache};
pub use crate::record::merged::{LeftOut, MachineClass, MergeRecord, TakenRun};
pub use crate::record::probe::Family;
pub use crate::record::stack::{Input, Role};
pub use crate::record::stage::StageKind;
pub use crate::record::trial::{Gap, StepTime};
pub use crate::record::verdict::{DeviceVerdict, PageWrites, RanBeside, StatesTried, Verdict, VerdictRecord};
pub use crate::record::window::{CheckpointDone, SettleRecord};

pub use counters::{CostCounter, CounterComparison, CounterRow};
pub use durability::{Durability, DurabilityClass};
pub use estimate::Estimate;
pub use of_case::{BackendTime, CapacityFinding, CapacityStep, InMemory, SnapshotFinding, StageFinding, WaitShare};
pub use of_run::{
    Ageing, AgeingPoint, BestCombinations, CutFindings, DriveFinding, DriveRoundFinding, Effects, FullFinding,
    OptionEffect, PowerCut, Profiled, StackByHand,
};
pub use outcome::PairOutcome;
pub use over_time::{Heatmap, WaitOverTime, WaitsOverTime};
pub use probe::{CredibilityKind, LatencyFinding};
pub use ranking::{BaselineComparison, ClassRanking, Decision, RankRow, RankTrial, RankedBy, Ranking};
pub use turns::{CaseTurns, TurnsFinding};
pub use window::{CaseWindow, CheckpointFinding, PagesWritten, PhaseFinding, Trend, TrialWindow};

use crate::stats::ratio::BlockMean;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of this document; 1 is the first.
pub const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    pub format: u32,
    pub run: RunSummary,
    /// The answer in one paragraph, joined from the parts of `answer`.
    pub headline: String,
    /// The same in parts, for HTML pages.
    pub answer: RunAnswer,
    /// Machines in the order in which the run used them; more than one only if it was resumed elsewhere.
    pub machines: Vec<MachineFinding>,
    /// Effects of options, if a plan varies two or more together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effects>,
    /// Most important first.
    pub rankings: Vec<Ranking>,
    /// Turns, if cases were measured side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnsFinding>,
    /// Figures by amount of ageing, if the run varies it.
    pub ageing: Vec<Ageing>,
    /// Drives that were brought to their steady state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drives: Vec<DriveFinding>,
    /// Cost of a power cut, if requested: one entry per stack with a server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub power_cuts: Vec<PowerCut>,
    /// Stacks under the load of a server's profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiled: Vec<Profiled>,
    /// One per case, in the plan's order.
    pub cases: Vec<CaseFinding>,
    /// Measured trials with their series.
    pub trials: Vec<TrialFinding>,
    /// For trials repeated because of a disturbance: the attempt that does not count.
    pub set_aside: Vec<SetAside>,
    pub full: Vec<FullFinding>,
    /// Everything not run or not finished, with the reason.
    pub not_run: Vec<NotRun>,
    /// What to know before trusting a figure of the run or of any case, most important first.
    pub cautions: Vec<Caution>,
    /// Scripts of its stacks, for the page; filled in by who knows how stacks are built.
    #[serde(skip)]
    pub by_hand: Vec<StackByHand>,
}

/// Answer of a run: the question, the result, and remarks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunAnswer {
    /// What was compared and where: "On this machine (tpcb, clients=16)"; empty if nothing was measured.
    pub question: String,
    /// One sentence.
    pub answer: String,
    /// Sentences: less durable cases, storage's share, other rankings.
    pub notes: Vec<String>,
}

/// Something to know before trusting a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Caution {
    /// For example "data (308 to 313 MiB) fit into memory: reads came from cache".
    pub text: String,
    /// Ids of the affected cases; empty for the run as a whole.
    pub cases: Vec<String>,
    /// Name for exactly these cases, if there is one: "all cases", "all cases with a server".
    pub scope: Option<String>,
}

/// Synced writes a second to the filesystem below the images or of the folder, in a moment before and after each trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskCourse {
    /// Host name of its machine.
    pub machine: String,
    /// Folder of the images.
    pub folder: String,
    pub per_s_median: f64,
    pub per_s_lowest: f64,
    pub per_s_highest: f64,
    /// Wall clock, microseconds since 1970, and rate of each probe, in order of time.
    pub probes: Vec<(u64, f64)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    pub id: String,
    pub name: String,
    /// Start of the run, RFC 3339.
    pub started: String,
    /// Version of pgstrata that took the measurements.
    pub measured_by: String,
    /// Version of pgstrata that did the analysis.
    pub analysed_by: String,
    /// Seed of the execution order.
    pub seed: u64,
    pub blocks: u32,
    /// For blocks spread over machines: which blocks these are, and which machines they come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_held: Option<String>,
    /// Planned trials.
    pub trials_planned: u32,
    pub trials_measured: u32,
    /// Those that failed or are still to do.
    pub trials_not_run: u32,
    /// Those whose files cannot be read.
    pub trials_damaged: u32,
    /// Measured trials with a probe of the disk, before or after, that was off by more than a factor of three.
    pub trials_disturbed: u32,
    /// The same by block; blocks without any are left out.
    #[serde(default)]
    pub disturbed_by_block: BTreeMap<u32, u32>,
    /// How steady the disks below the stacks were; none without probes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskCourse>,
    /// Share of the wall time spent measuring a workload, 0 to 1; `None` while the run has not ended.
    pub measured_share: Option<f64>,
    /// The plan as given by the user.
    pub plan: String,
    /// Axis values of the baseline.
    pub baseline: BTreeMap<String, String>,
    /// Sources of a merged run and what was left out of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeRecord>,
}

/// A machine and what ran on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineFinding {
    pub host: HostFacts,
    /// Trials that ran on it, including those without figures, in the run's order.
    pub trials: Vec<TrialKey>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseFinding {
    pub id: String,
    /// Position in the matrix.
    pub axes: BTreeMap<String, String>,
    pub workload_kind: String,
    /// Target rate of the clients, operations per second; `None` for a closed loop, where each client sends the next
    /// operation when the last is done, so latencies are service times.
    pub fixed_rate: Option<f64>,
    /// Operations slower than this count as late, microseconds.
    pub latency_limit_us: Option<u64>,
    /// Share of operations whose latency was logged, if not all: percentiles cover only these, counts cover all.
    pub log_sample: Option<f64>,
    pub trials: u32,
    pub durability: Durability,
    /// Cost of a power cut, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The main one first.
    pub measures: Vec<MeasureFinding>,
    /// Highest rate within a latency limit, if searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacityFinding>,
    /// One-off work in its trials, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageFinding>,
    /// Effect of snapshots on the load, if the case makes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<SnapshotFinding>,
    /// Steadiness over the seconds of all trials.
    pub steadiness: Option<Steadiness>,
    /// Cost of one commit at each layer.
    pub strata: Option<Strata>,
    pub backend_time: Option<BackendTime>,
    /// Where the data fit, in the largest trial.
    pub fits: Option<Fits>,
    /// Size of the database in the largest trial, bytes.
    pub database_bytes: Option<u64>,
    /// Mean statement latencies over trials.
    pub statements: Vec<StatementFigures>,
    /// Contents of the measured windows, for a case with a server.
    pub window: Option<CaseWindow>,
    /// Probe rows, if the case measured synced writes without a server.
    pub synced: Option<Synced>,
    /// What to know about this case, with its own figures: "the CPUs were 97 % busy".
    pub cautions: Vec<String>,
    /// Counters per operation of each trial, for comparison with other runs.
    #[serde(skip)]
    pub work: Vec<(CostCounter, BlockMean)>,
}

/// Probe results of a case over all its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Synced {
    /// Each distinct credibility that a trial arrived at.
    pub credibility: Vec<SyncedCredibility>,
    /// In the probe's order.
    pub rows: Vec<SyncedRow>,
}

/// A credibility shared by some trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncedCredibility {
    pub kind: CredibilityKind,
    /// Reason, taken from the first affected trial.
    pub reason: String,
    pub trials: u32,
}

/// A probe row over all trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncedRow {
    /// Section of the probe's table.
    pub family: Family,
    /// The probe's label for the row.
    pub label: String,
    /// Operations per second.
    pub rate: Option<Estimate>,
    /// Reason that no rate is known.
    pub unavailable: Option<String>,
    /// From the first trial.
    pub latency: Option<LatencyFinding>,
    /// Work per operation of the first trial at the device below the filesystem.
    pub device_work: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasureFinding {
    /// `transactions`, `fdatasync`.
    pub name: String,
    /// `tps`, `ops/s`.
    pub unit: String,
    /// Geometric mean over the trials, with the interval from this case's trials alone; in a ranking by rate, over those
    /// of the blocks that all its cases have. `None` if unavailable.
    pub rate: Option<Estimate>,
    /// Reason that no rate is known.
    pub unavailable: Option<String>,
    /// Latencies from the merged histograms of all trials.
    pub latency: Option<Latency>,
    /// Operations in all trials.
    pub done: u64,
    pub failed: u64,
    /// Operations skipped because they were already late.
    pub skipped: u64,
    /// Operations that finished later than the limit.
    pub late: u64,
    /// At a fixed rate: roughly how many operations fell due but were never sent because no client was free before the
    /// window ended.
    pub unsent: u64,
    /// Share of due operations that completed on time, 0 to 1, over trials.
    pub in_time: Option<Estimate>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Microseconds.
    pub mean_us: f64,
    /// p50, p95, p99 and p99.9.
    pub percentiles: Vec<Percentile>,
    /// Slowest logged operation, microseconds.
    pub max_us: u64,
    /// Curve for the chart: (percentile 0 to 100, microseconds), ascending, denser towards 100.
    pub curve: Vec<(f64, u64)>,
}

impl Latency {
    /// The percentile with this name, such as `p99.9`.
    pub fn percentile(&self, name: &str) -> Option<&Percentile> {
        self.percentiles.iter().find(|percentile| percentile.name == name)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// `p99.9`.
    pub name: String,
    /// Geometric mean of the trials' own percentiles, microseconds; `None` unless every trial has one.
    pub over_trials: Option<Estimate>,
    /// Why `over_trials` is missing.
    pub unavailable: Option<String>,
    /// Trial number and the trial's own percentile, microseconds.
    pub trials: Vec<(u32, u64)>,
    /// Percentile of all trials' operations together, microseconds; its tail may come from a single trial.
    pub merged_us: Option<u64>,
    pub comparison: Option<PercentileRatio>,
}

/// A percentile relative to the baseline's, block by block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PercentileRatio {
    /// Id of the baseline case.
    pub baseline: String,
    pub ratio: Estimate,
    /// Differs if the interval excludes 1.
    pub outcome: PairOutcome,
}

/// Rate stability, second by second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Steadiness {
    /// Whole seconds examined.
    pub seconds: u64,
    /// Standard deviation of operations per second over their mean.
    pub coefficient_of_variation: f64,
    /// Seconds without an operation.
    pub seconds_at_zero: u64,
    /// Seconds below a tenth of the median second.
    pub seconds_under_tenth: u64,
    /// Seconds below half of the median second.
    pub seconds_under_half: u64,
    /// Longest sequence of seconds without an operation.
    pub longest_zero_s: u64,
    /// Longest time without a completed operation, microseconds, to 1 ms, at most where a share was logged; `None`
    /// if operations were not seen individually.
    pub longest_idle_us: Option<u64>,
    /// Longest single operation, microseconds: the longest stall seen by a client, at least where a share was logged.
    pub longest_stall_us: Option<u64>,
    /// Trial and second of the longest stall.
    pub longest_stall_at: Option<(u32, u64)>,
}

/// Cost of one client operation at each layer, over all trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Strata {
    /// For example "one commit = 1.02 device writes of 16.4 KiB + 0.5 flushes".
    pub sentence: String,
    /// Client operations that the figures are based on.
    pub operations: u64,
    /// Per commit.
    pub wal_bytes: Option<f64>,
    /// Per commit.
    pub wal_records: Option<f64>,
    /// Per commit.
    pub full_page_images: Option<f64>,
    /// WAL syncs per commit.
    pub wal_syncs: Option<f64>,
    /// Transactions that wrote, including subtransactions, per operation.
    pub writing: Option<f64>,
    /// From top to bottom, the data's devices first.
    pub devices: Vec<DeviceStrata>,
    /// Sum over the devices that the stack was built on (for a folder, the first device below it); `None` if none of
    /// them is counted.
    pub at_stack_devices: Option<DeviceStrata>,
    /// Bytes written to the lowest device per byte of WAL.
    pub write_amplification: Option<f64>,
    /// CPU time of server, kernel and clients per operation (the whole machine less other programs), microseconds.
    pub cpu_us: Option<f64>,
    /// Cost of the files below its images, if the device below them is counted.
    pub image: Option<ImageCost>,
    /// Commits relative to the synced writes of the WAL's stack alone, if the run measured both.
    pub flush_share: Option<FlushShare>,
}

/// Writes below the loop devices of a case in excess of those that reached the loop devices: the filesystem that holds
/// the image allocates blocks and keeps its own journal. Writes of other programs to that device are included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageCost {
    /// Present if the cost is above noise: "the file below the image added 0.10 writes and 1.2 KiB a commit".
    pub sentence: Option<String>,
    /// Additional writes per operation; negative if writes were merged.
    pub writes: Estimate,
    /// Additional bytes per operation.
    pub bytes: Estimate,
}

/// Commit rate as a share of the synced writes that a single writer gets from the stack without PostgreSQL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlushShare {
    /// For example "654 commits a second by 1 client are 15 % of the 4368 fdatasync/s that one writer gets ...".
    pub sentence: String,
    /// Clients of the case; one flush can serve the commits of several.
    pub clients: u64,
    /// Commits per second, or transactions if not every one is known to commit.
    pub commits: Estimate,
    /// `wal_sync_method` in force.
    pub method: String,
    /// Synced writes per second with that method from a single writer.
    pub syncs: Estimate,
    /// Id of the case that measured them.
    pub sync_case: String,
    /// Commits over synced writes: 0.57 is 57 %; above 1 if flushes were shared.
    pub share: Estimate,
}

/// Cost of one operation at one device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceStrata {
    /// Name of its node in the stack: `loop`, `vda`.
    pub node: String,
    /// Kernel name, or the class `loop` if the loop number differs between trials.
    pub device: String,
    /// Per operation.
    pub writes: Option<f64>,
    pub bytes_per_write: Option<f64>,
    /// Bytes written per operation.
    pub write_bytes: Option<f64>,
    /// Per operation.
    pub flushes: Option<f64>,
    /// Per operation.
    pub reads: Option<f64>,
    /// Share of the time the device was busy, 0 to 1.
    pub busy: Option<f64>,
    /// Activity per second.
    pub io: DeviceIo,
}

/// Device activity during measurement. `None` if the device does not count it; latencies also if there were no such
/// requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceIo {
    pub reads_per_s: Option<f64>,
    /// 10^6 bytes a second.
    pub read_mb_per_s: Option<f64>,
    /// From start to end of the request, as counted by the kernel.
    pub read_ms_mean: Option<f64>,
    pub writes_per_s: Option<f64>,
    pub write_mb_per_s: Option<f64>,
    pub write_ms_mean: Option<f64>,
    pub flushes_per_s: Option<f64>,
    pub flush_ms_mean: Option<f64>,
    /// Mean number of requests in flight.
    pub queue_depth_mean: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZeroSeconds {
    /// Whole seconds with known figures.
    pub seconds: u64,
    /// Seconds in which no operation completed.
    pub at_zero: u64,
    /// Longest sequence of such seconds.
    pub longest_s: u64,
}

/// One trial with its series, downsampled so that reports stay small but stalls remain visible.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialFinding {
    pub case: String,
    pub trial: u32,
    /// Start of the trial, RFC 3339.
    pub started: String,
    pub rate: Option<f64>,
    /// Operations per second.
    pub throughput: Option<Series>,
    /// Slowest operation of each second, milliseconds.
    pub latency_ms_max: Option<Series>,
    /// Absent if measures take turns, or if a search or a crash causes such seconds.
    pub zero_seconds: Option<ZeroSeconds>,
    pub telemetry: Vec<Series>,
    pub heatmap: Option<Heatmap>,
    /// Backend activity over time, for a trial with a server.
    pub waits: Option<WaitsOverTime>,
    /// Processes that used the most CPU: name, mean share of one CPU.
    pub processes: Vec<(String, f64)>,
    /// Holes in the telemetry.
    pub gaps: Vec<Gap>,
    pub steps: Vec<StepTime>,
    /// Kernel settings in force on the machine.
    pub knobs: BTreeMap<String, String>,
    /// The stack as found on the machine.
    pub stack: Option<StackFacts>,
    pub server: Option<ServerFacts>,
    /// Cache state and origin of the data.
    pub cache_state: Option<String>,
    /// How the trial waited for a quiet machine.
    pub settle: Option<SettleRecord>,
    /// Contents of the measured window, for a trial with a server.
    pub window: Option<TrialWindow>,
    /// Figures reported by the load tool next to pgstrata's own.
    pub checks: Vec<CrossCheck>,
    pub notes: Vec<String>,
}

/// A trial that does not count: a disturbed one whose repeat was undisturbed, or a failed repeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetAside {
    pub case: String,
    pub trial: u32,
    /// Start of the trial, RFC 3339.
    pub started: String,
    pub is_repeat: bool,
    pub rate: Option<f64>,
    /// Rate of its probe of the disk that was farthest off, divided by that of the last probes before it.
    pub disk_against_last: Option<f64>,
    /// What disturbed it, or why the repeat failed.
    pub why: String,
}

/// A figure reported by the load tool next to pgstrata's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrossCheck {
    /// `transactions`, `latency_ms_mean`.
    pub what: String,
    /// Value in the tool's summary.
    pub tool: f64,
    /// Value counted by pgstrata.
    pub own: f64,
    /// True if the two agree within `tolerance`.
    pub agrees: bool,
    /// Relative tolerance; 0 means exact equality.
    pub tolerance: f64,
}

/// A series of one trial in buckets of whole seconds, with the minimum and maximum of each so that no stall is lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// For example "WAL written".
    pub title: String,
    /// `tps`, `MiB/s`, `%`.
    pub unit: String,
    /// Chart to draw it in: `latency`, `device_queue`, `cpu`, ...; all series of a group share their meaning and unit.
    pub group: String,
    /// Seconds per bucket; 1 if nothing was downsampled.
    pub bucket_s: u32,
    /// Minimum of each bucket; `None` for a gap.
    pub min: Vec<Option<f32>>,
    /// Maximum of each bucket; empty if `bucket_s` is 1 (same as `min`).
    pub max: Vec<Option<f32>>,
}

/// One or more trials of a case without figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotRun {
    pub case: String,
    /// Trials that share the reason.
    pub trials: Vec<u32>,
    /// Step in which it ended; `None` if not run yet or damaged since.
    pub step: Option<String>,
    pub reason: String,
    pub hint: Option<String>,
}
