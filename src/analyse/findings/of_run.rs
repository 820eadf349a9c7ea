//! Findings on a run beside its rankings: effects of options, ageing, drives, power cuts, trials whose stack filled up.

use super::{CutRecord, DurabilityClass, Estimate, PairOutcome, VerdictRecord};
use serde::{Deserialize, Serialize};

/// Effects of the options that vary among the cases of one workload and measure. Intervals and outcomes of all its
/// options hold together with 95 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effects {
    /// For example "tpcb".
    pub title: String,
    /// Combinations measured.
    pub combinations: usize,
    /// Blocks that all of them have.
    pub blocks: usize,
    /// Why there are no effects.
    pub unavailable: Option<String>,
    /// Axis by axis, the stack first.
    pub options: Vec<OptionEffect>,
    /// What each level does to the WAL per operation, together with 95 % as well; empty where a case wrote none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wal: Vec<OptionEffect>,
    /// `None` without effects, and where the number of blocks was not fixed in advance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestCombinations>,
}

/// The best combinations of the safest durability class, at the load of the most important ranking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BestCombinations {
    /// Names of those that no other was shown to beat, best figure first: "xfs full_page_writes=off".
    pub labels: Vec<String>,
    /// True if they are shown to be the same, rather than undecided.
    pub same_within_percent: Option<u32>,
    pub class: DurabilityClass,
    /// Ids of all combinations of that class at that load.
    pub compared: Vec<String>,
    /// "clients=8"; `None` if the load does not vary.
    pub load: Option<String>,
    /// The baseline, else the plan's first combination.
    pub reference: String,
    /// Of the first of the best over the reference; `None` if it is the reference.
    pub ratio: Option<Estimate>,
}

impl Effects {
    /// True if two or more options vary beside the load: then no single ranking answers the plan.
    pub fn has_several_options(&self) -> bool {
        let mut judged = self.options.iter().filter(|option| option.outcome.is_some()).map(|option| &option.axis);
        judged.next().is_some_and(|first| judged.any(|axis| axis != first))
    }
}

/// Effect of one level of an axis instead of the reference level: over all pairs of trials that differ in it alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OptionEffect {
    pub axis: String,
    pub level: String,
    /// The baseline's level, else the plan's first.
    pub reference: String,
    /// The level of another axis that it depends on, "clients=16"; `None` for the mean over all combinations of the others.
    pub at: Option<String>,
    /// Geometric mean.
    pub ratio: Estimate,
    /// `None` for an option of the workload: another load is neither better nor worse.
    pub outcome: Option<PairOutcome>,
    pub pairs: usize,
    /// True if the pairs, or some of them, differ in durability class.
    pub differs_in_durability: bool,
}

/// What a stack does with the load of a server's profile. A figure is absent where the plan did not measure it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profiled {
    /// Stack and other axes beside the workload's: "xfs full_page_writes=off".
    pub name: String,
    /// Commits a second of the profile.
    pub rate: f64,
    /// At that rate, from when a transaction was due, microseconds.
    pub p99_us: Option<Estimate>,
    /// Why it is missing.
    pub p99_unavailable: Option<String>,
    /// Within it 99 % of the transactions must be done, microseconds.
    pub limit_us: Option<u64>,
    /// Highest rate at which they are, and lowest one at which they are not, as multiples of the profile's; the same if the
    /// rate was searched for.
    pub holds: Option<f64>,
    pub fails: Option<f64>,
    /// At the profile's rate.
    pub wal_bytes_per_day: Option<f64>,
    /// Written to the devices that the stack is built on.
    pub device_bytes_per_day: Option<f64>,
    /// From a crash to the first commit after it.
    pub back_s: Option<Estimate>,
}

/// One figure of a stack and workload by amount of ageing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ageing {
    /// Stack, workload and other axes that the cases share.
    pub name: String,
    /// `age.rewrite`, `age.pgbench`, `age.churn`, `age.fill`.
    pub axis: String,
    /// Meaning of the amount: `times overwritten (page rewrite)`.
    pub amount: String,
    /// `extents per GiB`, `scan`.
    pub figure: String,
    pub unit: String,
    /// In ascending order of amount.
    pub points: Vec<AgeingPoint>,
    /// Relative change per unit of the amount, 0.02 for 2 % more; of the ratio to the control if every point has one.
    pub slope: Option<Estimate>,
    /// The slope in words, and whether the figure is steady.
    pub sentence: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgeingPoint {
    /// Amount of ageing: repetitions, or percent.
    pub x: f64,
    pub aged: Option<Estimate>,
    /// Control: the same cluster on a fresh filesystem.
    pub fresh: Option<Estimate>,
    /// Aged over fresh, block by block.
    pub ratio: Option<Estimate>,
    /// True if the ratio's interval excludes 1 and the ratio differs from 1 by at least 1 %.
    pub told_apart: Option<bool>,
}

/// A drive, or the part of it that stacks use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriveFinding {
    /// Path and serial number, or folder and size of an image.
    pub drive: String,
    pub model: Option<String>,
    pub bytes: u64,
    /// Substitute for SNIA's PURGE.
    pub purge: String,
    /// Bytes written sequentially, and the rate in bytes per second.
    pub fill_bytes: u64,
    pub fill_bytes_per_s: f64,
    /// Size of a random write, and the number in flight.
    pub block_bytes: u64,
    pub depth: u32,
    pub rounds: Vec<DriveRoundFinding>,
    /// Round after which the drive was steady; `None` if it never was.
    pub steady_after: Option<u64>,
    pub sentence: String,
}

/// A round, with the figures of the five-round window that ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DriveRoundFinding {
    /// Seconds from the start of the first round to the end of this one.
    pub until_s: f64,
    pub rate: f64,
    /// Largest less smallest figure in the window, as a share of its mean; `None` before the fifth round.
    pub range: Option<f64>,
    /// Change of the line fitted to the window, as a share of its mean.
    pub excursion: Option<f64>,
}

/// Cost of a power cut for the cases that share a stack and a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PowerCut {
    /// Common name of the cases: "ext4".
    pub label: String,
    #[serde(flatten)]
    pub record: VerdictRecord,
    /// Requests to the recorded disks and bytes written, per commit; `None` if nothing was recorded.
    pub writes_per_commit: Option<f64>,
    pub flushes_per_commit: Option<f64>,
    pub bytes_per_commit: Option<f64>,
    /// Upper bound (95 %) of the share of failing states, if none failed.
    pub failing_share_max: Option<f64>,
}

/// What a power cut would cost the cases of a plan, found without a run.
#[derive(Debug, Clone, PartialEq)]
pub struct CutFindings {
    pub record: CutRecord,
    /// One sentence for each kind of verdict, the gravest first.
    pub answer: String,
    /// The verdicts of the record, each named after its first case.
    pub power_cuts: Vec<PowerCut>,
}

/// A trial that ran out of space: a valid result, with figures up to that point if there are any.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FullFinding {
    pub case: String,
    pub trial: u32,
    /// Step in progress: "measuring".
    pub step: String,
    /// Seconds from the first operation to the first refusal; without figures, from the beginning of the step.
    pub after_s: f64,
    /// Message of the first refusal, from the server or the tool.
    pub reason: String,
    /// Used share of the data filesystem, 0 to 1, as counted by df.
    pub used: Option<f64>,
    /// Last lines of the server's log; empty without a server.
    pub server_log: String,
    /// True if the trial has figures.
    pub is_measured: bool,
}

/// The script that builds a stack of the run by hand.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StackByHand {
    pub stack: String,
    /// The case that the script is of.
    pub case: String,
    /// The script, or why there is none.
    pub script: Result<String, String>,
}
