//! The events of a run, in order: one stream, stored as `events.jsonl`, shown as progress, printed by `--json`.

use super::case::TrialKey;
use super::drive::{DriveRecord, DriveRound};
use super::verdict::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A step of a trial. The last two run however the trial ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Checks the requirements of the case.
    Check,
    /// Makes the data once for a PostgreSQL build and scale.
    Template,
    /// Fully writes missing image files of the stack.
    Images,
    /// Brings drives of the stack to their steady state.
    Precondition,
    /// Builds the stack.
    Build,
    /// Copies the data in.
    Load,
    /// Ages the stack.
    Age,
    /// Writes the settings and starts the server.
    Start,
    /// Waits for the machine to be quiet.
    Settle,
    /// Runs the workload unmeasured.
    WarmUp,
    /// Runs the workload measured.
    Measure,
    /// Reads back what the measurement left on the stack.
    ReadBack,
    /// Stops the server and tears down the stack.
    TearDown,
    /// Writes the trial to the run folder.
    Store,
}

impl Step {
    /// Every step in order, with its name in the manual and the report, and a phrase for its activity.
    const WORDS: [(Step, &str, &str); 14] = [
        (Step::Check, "check", "checking requirements"),
        (Step::Template, "template", "creating the data"),
        (Step::Images, "images", "fully writing the images"),
        (Step::Precondition, "precondition", "bringing the drive to its steady state"),
        (Step::Build, "build", "building the stack"),
        (Step::Load, "load", "copying the data in"),
        (Step::Age, "age", "ageing the stack"),
        (Step::Start, "start", "starting the server"),
        (Step::Settle, "settle", "waiting for a quiet machine"),
        (Step::WarmUp, "warm-up", "warming up"),
        (Step::Measure, "measure", "measuring"),
        (Step::ReadBack, "read back", "reading back the state after the measurement"),
        (Step::TearDown, "tear down", "tearing down"),
        (Step::Store, "store", "storing"),
    ];

    /// Every step in order.
    pub fn all() -> impl Iterator<Item = Step> {
        Step::WORDS.into_iter().map(|(step, ..)| step)
    }

    /// Name in the manual and the report.
    pub fn name(self) -> &'static str {
        Step::WORDS[self as usize].1
    }

    /// Phrase for progress output and for the step in which a trial failed.
    pub(crate) fn doing(self) -> &'static str {
        Step::WORDS[self as usize].2
    }
}

/// Work left for a case when the run began or resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseLeft {
    /// Trials left.
    pub trials: u32,
    /// Estimate for one trial, microseconds, excluding data and images that are made once.
    pub expected_us: u64,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run began.
    RunStarted {
        /// The run's id.
        run: String,
        /// Number of trials to run.
        trials: u32,
        /// Estimated total, microseconds.
        expected_us: u64,
        /// Repeats of disturbed trials that may be added, at most.
        #[serde(default)]
        most_repeats: u32,
        /// Cases, for the time left.
        #[serde(default)]
        cases: BTreeMap<String, CaseLeft>,
    },
    /// The run resumed after a stop.
    RunResumed {
        /// The run's id.
        run: String,
        /// Trials already complete.
        done: u32,
        /// Trials left.
        left: u32,
        /// Estimated time left, microseconds.
        expected_us: u64,
        /// Repeats of disturbed trials that may be added, at most.
        #[serde(default)]
        most_repeats: u32,
        /// Cases with trials left.
        #[serde(default)]
        cases: BTreeMap<String, CaseLeft>,
        /// Suite of the guest in which the run continues by itself, after another guest or after a guest died. `None`
        /// if a person resumed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_guest: Option<String>,
    },
    /// The run was given more blocks than it was planned with.
    RunExtended {
        /// Blocks before.
        from: u32,
        /// Blocks from now on.
        to: u32,
    },
    /// Recording of a case's stack began, to determine what a power cut would cost.
    VerdictStarted {
        /// Id of the case; other cases may share the verdict.
        case: String,
    },
    /// The verdict on a power cut is stored.
    VerdictReached {
        /// Id of the case.
        case: String,
        /// The verdict.
        verdict: Verdict,
    },
    /// A trial began.
    TrialStarted {
        /// Its key.
        trial: TrialKey,
    },
    /// A repeat of a disturbed trial began; its start and end follow as for any trial.
    RepeatStarted {
        /// Its key.
        trial: TrialKey,
    },
    /// A trial entered a step.
    StepStarted {
        /// Its key.
        trial: TrialKey,
        /// The step.
        step: Step,
        /// Estimated duration, microseconds, if known.
        expected_us: Option<u64>,
    },
    /// All cases that stand at once get a turn each; one that is made again has its number again.
    RoundStarted {
        /// Number of the round in the block, from 1.
        round: u32,
        /// Rounds of the block.
        of: u32,
    },
    /// Progress of writing a stack's images. Shown and streamed, not stored.
    ImagesWritten {
        /// First trial that needs them.
        trial: TrialKey,
        /// Bytes written so far.
        done_bytes: u64,
        /// Total bytes to write.
        of_bytes: u64,
    },
    /// Progress of filling a drive sequentially, before its rounds. Shown and streamed, not stored.
    DriveFilled {
        /// First trial that needs it.
        trial: TrialKey,
        /// The drive.
        drive: String,
        /// Bytes written so far.
        done_bytes: u64,
        /// Total bytes to write.
        of_bytes: u64,
    },
    /// A round of random writes on a drive ended.
    DriveRound {
        /// First trial that needs it.
        trial: TrialKey,
        /// The drive.
        drive: String,
        /// Number of the round, from 1.
        number: u32,
        /// Maximum number of rounds.
        most_rounds: u32,
        /// Result of the round.
        round: DriveRound,
    },
    /// A drive has been prepared: it is steady, or had its last round. A resumed run does not repeat this.
    DrivePreconditioned {
        /// First trial that needed it.
        trial: TrialKey,
        /// Record of the preparation.
        drive: Box<DriveRecord>,
    },
    /// A second of the measurement is complete. Shown and streamed, not stored: the figures are in `seconds.parquet`.
    Second {
        /// Its key.
        trial: TrialKey,
        /// Second of the measurement, from 1.
        second: u64,
        /// Operations done in it.
        done: u64,
        /// 99th percentile of latency, microseconds.
        latency_us_p99: Option<u64>,
    },
    /// A trial was measured and stored.
    TrialDone {
        /// Its key.
        trial: TrialKey,
        /// Wall time of the whole trial, microseconds.
        wall_us: u64,
        /// Wall time of the measurement, microseconds.
        measured_us: u64,
        /// Operations per second, for the live view.
        rate: Option<f64>,
        /// Time until its stack filled up, microseconds after the first operation; `None` if it did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        full_after_us: Option<u64>,
    },
    /// A trial failed to run; the reason is stored.
    TrialNotRun {
        /// Its key.
        trial: TrialKey,
        /// Step in which it ended.
        step: Step,
        /// Reason.
        reason: String,
        /// Time until its stack filled up, microseconds after the start of that step, if that is the reason: a result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        full_after_us: Option<u64>,
    },
    /// Adaptive blocks: decisions from the trials so far, after a whole block.
    Looked {
        /// The block.
        block: u32,
        /// Pairs newly decided.
        decided: Vec<PairDecided>,
        /// Cases that get no more trials.
        stopped: Vec<CaseStopped>,
        /// Cases that continue.
        going_on: Vec<String>,
        /// Trials left if no later look stops anything.
        left: u32,
    },
    /// A trial in a guest has reached its machine crash: the guest is now killed and rebooted.
    CrashAsked {
        /// Its key.
        trial: TrialKey,
        /// Microseconds from the last answer to the client running alongside until this event.
        since_answer_us: u64,
        /// Longest time between two answers to that client, microseconds.
        answers_apart_us: u64,
    },
    /// The trial continues in the rebooted guest.
    CrashSurvived {
        /// Its key.
        trial: TrialKey,
        /// Microseconds from the last answer to that client until now: kill and boot of the guest.
        away_us: u64,
    },
    /// The next trials run in another guest, which now boots.
    HandedOver {
        /// Suite of that guest.
        guest: String,
    },
    /// Something the user should know.
    Warning {
        /// Text of the warning.
        message: String,
    },
    /// The user asked to stop.
    Interrupted,
    /// The run ended.
    RunDone {
        /// Wall time, microseconds.
        wall_us: u64,
        /// Time spent measuring workloads, microseconds; part of `wall_us`.
        measured_us: u64,
        /// Trials measured, in this and earlier sessions.
        done: u32,
        /// Trials not run.
        not_run: u32,
    },
}

/// Two cases decided by a look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairDecided {
    /// Title of the ranking.
    pub ranking: String,
    /// Id of the better case, or of either.
    pub case: String,
    /// Id of the other case.
    pub other: String,
    /// The decision.
    pub relation: PairRelation,
}

/// Relation between two cases as decided by a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairRelation {
    /// The first case is better.
    Differs,
    /// The cases are within the run's precision of each other.
    Same,
}

/// A case that gets no more trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseStopped {
    /// Id of the case.
    pub case: String,
    /// Reason.
    pub reason: String,
}

/// An event with its timestamp.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// Wall clock, microseconds since 1970-01-01 UTC.
    pub at_us: u64,
    /// The event.
    pub what: Event,
}
