//! What happened in a run, in order: one event stream, stored as `events.jsonl`, shown as progress, printed by `--json`.

use super::case::TrialKey;
use super::drive::{DriveRecord, DriveRound};
use super::verdict::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A step of a trial. Whatever ends one of them, the last two follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Requirements of the case are checked.
    Check,
    /// The data are made once for a PostgreSQL build and a scale.
    Template,
    /// Image files of the stack that are not there yet are written in full.
    Images,
    /// Drives of the stack that are not in their steady state yet are brought there.
    Precondition,
    /// The stack is built.
    Build,
    /// The data are copied in.
    Load,
    /// The stack is aged.
    Age,
    /// Settings are written and the server is started.
    Start,
    /// The machine is waited for to be quiet.
    Settle,
    /// The workload runs, unmeasured.
    WarmUp,
    /// The workload runs, measured.
    Measure,
    /// What the measurement left on the stack is read back.
    ReadBack,
    /// Server stopped and stack undone.
    TearDown,
    /// The trial is written to the run folder.
    Store,
}

impl Step {
    /// Every step in order: its name, as the manual and the report have it, and what goes on in it.
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

    /// Its name, as the manual and the report have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Step::WORDS[self as usize].1
    }

    /// What goes on in it, for progress and for where a trial failed.
    #[must_use]
    pub(crate) fn doing(self) -> &'static str {
        Step::WORDS[self as usize].2
    }
}

/// What was left of a case when the run began or went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseLeft {
    /// Trials left.
    pub trials: u32,
    /// Estimate of one of them, microseconds; data and images that are made once are not in it.
    pub expected_us: u64,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run began.
    RunStarted {
        /// The run's id.
        run: String,
        /// Number of trials to do.
        trials: u32,
        /// Estimate of the whole, microseconds.
        expected_us: u64,
        /// Repeats of disturbed trials that may come on top, at most.
        #[serde(default)]
        most_repeats: u32,
        /// The cases, for the time left.
        #[serde(default)]
        cases: BTreeMap<String, CaseLeft>,
    },
    /// The run went on after a stop.
    RunResumed {
        /// The run's id.
        run: String,
        /// Trials that were already complete.
        done: u32,
        /// Trials left.
        left: u32,
        /// Estimate of what is left, microseconds.
        expected_us: u64,
        /// Repeats of disturbed trials that may come on top, at most.
        #[serde(default)]
        most_repeats: u32,
        /// The cases that have trials left.
        #[serde(default)]
        cases: BTreeMap<String, CaseLeft>,
        /// Suite of the guest in which the run goes on by itself: another guest came before it, or one has died. `None`
        /// where a person resumed it.
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
    /// A case's stack is recorded to find out what a power cut would cost.
    VerdictStarted {
        /// Id of the case; others may share the verdict.
        case: String,
    },
    /// What a power cut would cost is known and stored.
    VerdictReached {
        /// Id of the case.
        case: String,
        /// The verdict.
        verdict: Verdict,
    },
    /// A trial began.
    TrialStarted {
        /// Which.
        trial: TrialKey,
    },
    /// A trial that others disturbed is measured once more; how it begins and ends follows as for any.
    RepeatStarted {
        /// Which.
        trial: TrialKey,
    },
    /// A trial entered a step.
    StepStarted {
        /// Which.
        trial: TrialKey,
        /// The step.
        step: Step,
        /// How long it should take, microseconds, where that is known.
        expected_us: Option<u64>,
    },
    /// So much of the images of a stack is written. Shown and streamed, not stored.
    ImagesWritten {
        /// Which trial needs them first.
        trial: TrialKey,
        /// Bytes written so far.
        done_bytes: u64,
        /// Bytes of all that are missing.
        of_bytes: u64,
    },
    /// So much of a drive is written in sequence, before its rounds. Shown and streamed, not stored.
    DriveFilled {
        /// Which trial needs it first.
        trial: TrialKey,
        /// The drive.
        drive: String,
        /// Bytes written so far.
        done_bytes: u64,
        /// Bytes of all that are written in sequence.
        of_bytes: u64,
    },
    /// A round of random writes on a drive has ended.
    DriveRound {
        /// Which trial needs it first.
        trial: TrialKey,
        /// The drive.
        drive: String,
        /// Number of the round, from 1.
        number: u32,
        /// Rounds that there can be.
        most_rounds: u32,
        /// What was done in it.
        round: DriveRound,
    },
    /// A drive has been prepared: steady, or after its last round. A run that goes on does not repeat it.
    DrivePreconditioned {
        /// Which trial needed it first.
        trial: TrialKey,
        /// What was done.
        drive: Box<DriveRecord>,
    },
    /// A second of the measurement is complete. Shown and streamed, not stored: the figures are in `seconds.parquet`.
    Second {
        /// Which trial.
        trial: TrialKey,
        /// Second of the measurement, from 1.
        second: u64,
        /// Operations done in it.
        done: u64,
        /// Its 99th percentile, microseconds.
        latency_us_p99: Option<u64>,
    },
    /// A trial was measured and stored.
    TrialDone {
        /// Which.
        trial: TrialKey,
        /// Wall time of the whole trial, microseconds.
        wall_us: u64,
        /// Wall time of its measurement, microseconds.
        measured_us: u64,
        /// Operations a second, for the live view.
        rate: Option<f64>,
        /// When its stack was full, microseconds after the first operation, where it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        full_after_us: Option<u64>,
    },
    /// A trial was not measured; the reason is stored.
    TrialNotRun {
        /// Which.
        trial: TrialKey,
        /// In which step it ended.
        step: Step,
        /// Why.
        reason: String,
        /// When its stack was full, microseconds after that step began, where that is why: a result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        full_after_us: Option<u64>,
    },
    /// Adaptive blocks: what the trials so far decide, after a whole block.
    Looked {
        /// The block.
        block: u32,
        /// Pairs that were decided now.
        decided: Vec<PairDecided>,
        /// Cases that have no further trials.
        stopped: Vec<CaseStopped>,
        /// Cases that go on.
        going_on: Vec<String>,
        /// Trials left, should no later look stop anything.
        left: u32,
    },
    /// A trial in a guest has come to the crash of its machine: the guest is killed now, and booted again.
    CrashAsked {
        /// Which.
        trial: TrialKey,
        /// Microseconds from the last answer to the client beside the server to this event.
        since_answer_us: u64,
        /// Longest time between two answers to it, microseconds.
        answers_apart_us: u64,
    },
    /// The trial goes on in the guest that was booted again.
    CrashSurvived {
        /// Which.
        trial: TrialKey,
        /// Microseconds from the last answer to the client beside the server until now: kill and boot of the guest.
        away_us: u64,
    },
    /// The trials that are due next run in another guest, which is booted now.
    HandedOver {
        /// Its suite.
        guest: String,
    },
    /// Something that a person should know about.
    Warning {
        /// What.
        message: String,
    },
    /// The person asked to stop.
    Interrupted,
    /// The run ended.
    RunDone {
        /// Wall time, microseconds.
        wall_us: u64,
        /// Of that, time in which a workload was measured, microseconds.
        measured_us: u64,
        /// Trials measured, in this and earlier sittings.
        done: u32,
        /// Trials not run.
        not_run: u32,
    },
}

/// Two cases that a look has decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairDecided {
    /// Title of the ranking.
    pub ranking: String,
    /// Id of the better one, or of either.
    pub case: String,
    /// Id of the other one.
    pub other: String,
    /// What was decided.
    pub relation: PairRelation,
}

/// What a look says of two cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairRelation {
    /// The first one is better.
    Differs,
    /// They are within 5 % of each other.
    Same,
}

/// A case that has no further trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseStopped {
    /// Its id.
    pub case: String,
    /// Why.
    pub reason: String,
}

/// An event with its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// Wall clock, microseconds since 1970-01-01 UTC.
    pub at_us: u64,
    /// What happened.
    pub what: Event,
}
