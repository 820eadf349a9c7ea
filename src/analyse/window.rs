//! What the measured windows held: whole checkpoint cycles, what was done inside and outside of checkpoints, a trend from
//! the first cycle to the last, who wrote pages, what autovacuum took.

use super::case::CaseSums;
use super::counters::growth;
use super::findings::{CaseFinding, Estimate, TrialFinding};
use super::input::{PhaseLatencies, Seconds};
use super::percentiles::over_trials;
use super::remark::{Number, Remark, Weight};
use crate::record::columns;
use crate::record::counts::Counts;
use crate::record::operation::Writes;
use crate::record::run::{QuickOf, RunRecord};
use crate::record::trial::TrialRecord;
use crate::record::window::{CheckpointDone, Extent, WindowEnd, WindowRecord};
use crate::stats::autocorrelation;
use crate::stats::interval::TrialMean;
use crate::stats::ratio::BlockMean;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A trend is said when the first cycle and the last differ by more than this share ...
const TREND_WORTH_SAYING: f64 = 0.05;

/// ... and by more than so many standard errors (1 % of cycles without a trend, were they normal).
const TREND_ERRORS: f64 = 2.58;

/// Seconds that a third of a window must have to be set against another one: fewer do not tell their own noise.
const LEAST_THIRD: usize = 10;

/// Autovacuum's share of the time that is worth a remark.
const VACUUM_WORTH_SAYING: f64 = 0.01;

/// Bytes of a page, PostgreSQL's default, for a server that told none.
const PAGE: f64 = 8192.0;

/// The window of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialWindow {
    /// Checkpoint cycles that were asked for; `None` for a duration.
    pub asked_cycles: Option<u64>,
    /// Whole ones in it.
    pub whole_cycles: u64,
    /// Whether the time limit ended it before all cycles that were asked for.
    pub cut: bool,
    /// Length, seconds.
    pub length_s: f64,
    /// Cycles of the warm-up.
    pub warm_up_cycles: u64,
    /// Whether the last two of these agreed.
    pub settled: Option<bool>,
    /// Whether WAL was written beforehand, so that segments are recycled.
    pub prefilled: bool,
    /// WAL segments made new in it.
    pub wal_segments_new: Option<u64>,
    /// The checkpoints that touch it.
    pub checkpoints: Vec<CheckpointFinding>,
    /// First cycle against last, or first third against last without two whole cycles, where both are long enough.
    pub trend: Option<Trend>,
    /// Tables that autovacuum ended with in it, and the time that it took for them, seconds.
    pub vacuums: u64,
    pub vacuum_s: f64,
}

/// A checkpoint on the time axis of its trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointFinding {
    /// Seconds after the first operation began; below 0 for one that began before.
    pub start_s: f64,
    /// `None` where its end was not seen.
    pub end_s: Option<f64>,
    /// In the server's words: `time`, `wal`.
    pub cause: String,
    /// What it did.
    pub done: Option<CheckpointDone>,
}

/// Operations a second of the first and of the last whole cycle, or third.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    pub first: f64,
    pub last: f64,
    /// Whether they differ by more than their seconds explain.
    pub seen: bool,
}

/// The windows of a case, over its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseWindow {
    /// Fewest and most whole checkpoint cycles in a trial.
    pub whole_cycles: (u64, u64),
    /// Seconds that lie wholly in a checkpoint, from its start to its end.
    pub inside: Phase,
    /// Seconds that lie wholly outside.
    pub outside: Phase,
    /// Pages that were written, by whom.
    pub pages: Option<PagesWritten>,
    /// Time that checkpoints spent in their sync phase, seconds for each GB (10^9 bytes) that they wrote, over trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_s_per_gb: Option<Estimate>,
    /// Time of autovacuum on tables, over the time measured; above 1 where several workers were at it.
    pub vacuum_share: f64,
}

/// What was done in some of the seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    pub seconds: u64,
    /// Operations a second; `None` without seconds.
    pub rate: Option<f64>,
    /// 99th percentile of their latencies, microseconds.
    pub p99_us: Option<u64>,
}

/// Pages of data files written over all trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagesWritten {
    pub checkpointer: u64,
    pub background_writer: u64,
    /// Backends, autovacuum workers and all others.
    pub backends: u64,
}

/// Whether a stretch of the measurement, in microseconds after its first operation, lies in a checkpoint: wholly, not at
/// all, or (`None`) in part.
#[must_use]
pub fn in_checkpoint(window: &WindowRecord, start_us: u64, length_us: u64) -> Option<bool> {
    let from = window.first_operation_us + start_us;
    let to = from + length_us;
    let mut touched = false;
    for checkpoint in &window.checkpoints {
        let end = checkpoint.done.as_ref().map_or(u64::MAX, |done| done.ended_us);
        if checkpoint.started_us <= from && to <= end {
            return Some(true);
        }
        touched |= checkpoint.started_us < to && from < end;
    }
    (!touched).then_some(false)
}

/// Starts of checkpoints between which whole cycles lie, wall clock.
fn boundaries(window: &WindowRecord) -> Vec<u64> {
    let in_window = |at: &u64| *at > window.began_us && *at <= window.ended_us;
    let first = window.from_checkpoint.and_then(|place| window.checkpoints.get(place));
    let starts = window.checkpoints.iter().map(|checkpoint| checkpoint.started_us).filter(in_window);
    first.map(|checkpoint| checkpoint.started_us).into_iter().chain(starts).collect()
}

/// The window of a trial; `None` for a workload without a server.
#[must_use]
pub fn of_trial(record: &TrialRecord, counts: &Counts, seconds: &Seconds) -> Option<TrialWindow> {
    let window = record.window.as_ref()?;
    let boundaries = boundaries(window);
    let whole_cycles = boundaries.len().saturating_sub(1) as u64;
    let asked_cycles = match window.extent {
        Extent::Cycles { cycles, .. } => Some(cycles),
        Extent::Span { .. } => None,
    };
    let after = |at: u64| (at as f64 - window.first_operation_us as f64) / 1e6;
    let end_us = window.first_operation_us + counts.elapsed_us;
    let touching = window.checkpoints.iter().filter(|checkpoint| {
        checkpoint.started_us <= window.ended_us
            && checkpoint.done.as_ref().is_none_or(|done| done.ended_us >= window.first_operation_us)
    });
    let checkpoints = touching.map(|checkpoint| CheckpointFinding {
        start_s: after(checkpoint.started_us),
        end_s: checkpoint.done.as_ref().map(|done| after(done.ended_us)),
        cause: checkpoint.cause.clone(),
        done: checkpoint.done.clone(),
    });
    let removed: u64 = window
        .checkpoints
        .iter()
        .filter_map(|checkpoint| checkpoint.done.as_ref())
        .filter(|done| done.ended_us > window.began_us && done.ended_us <= window.ended_us)
        .map(|done| done.wal_removed)
        .sum();
    let segments = window.wal_segments_before.zip(window.wal_segments_after);
    let vacuums = window
        .vacuums
        .iter()
        .filter(|vacuum| vacuum.ended_us > window.first_operation_us && vacuum.ended_us <= window.ended_us);
    let in_window = |(end, elapsed): (u64, u64)| {
        end.min(end_us).saturating_sub((end - elapsed.min(end)).max(window.first_operation_us))
    };
    let vacuum_us: u64 = vacuums.clone().map(|vacuum| in_window((vacuum.ended_us, vacuum.elapsed_us))).sum();
    Some(TrialWindow {
        asked_cycles,
        whole_cycles,
        cut: window.end == WindowEnd::Time && asked_cycles.is_some_and(|asked| whole_cycles < asked),
        length_s: counts.elapsed_us as f64 / 1e6,
        warm_up_cycles: window.warm_up.len() as u64,
        settled: window.settled,
        prefilled: window.prefill.is_some(),
        wal_segments_new: segments.map(|(before, after)| (after + removed).saturating_sub(before)),
        checkpoints: checkpoints.collect(),
        // The steps of a search differ in their rate, and so do its cycles.
        trend: if counts.search.is_none() { trend(window, &boundaries, seconds) } else { None },
        vacuums: vacuums.count() as u64,
        vacuum_s: vacuum_us as f64 / 1e6,
    })
}

/// First whole cycle against last, by their whole seconds; in a window without whole cycles, or of a given duration with
/// fewer than two of them, the first third against the last.
fn trend(window: &WindowRecord, boundaries: &[u64], seconds: &Seconds) -> Option<Trend> {
    let done = seconds.counts(&columns::CLIENT_DONE)?;
    let (first, last) = match boundaries {
        [a, b, .., y, z] => ((*a, *b), (*y, *z)),
        [a, b, c] => ((*a, *b), (*b, *c)),
        [_, _] if matches!(window.extent, Extent::Cycles { .. }) => return None,
        _ => thirds(window.first_operation_us, done.rows().saturating_sub(1))?,
    };
    let of = |(from, to): (u64, u64)| -> Vec<f64> {
        let second = |row: usize| window.first_operation_us + (row as u64 - 1) * 1_000_000;
        let whole = (1..done.rows()).filter(|row| second(*row) >= from && second(*row) + 1_000_000 <= to);
        whole.filter_map(|row| done.at(row)).map(|done| done as f64).collect()
    };
    let (early, late) = (of(first), of(last));
    let (early_error, late_error) = (autocorrelation::within(&early)?, autocorrelation::within(&late)?);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (first, last) = (mean(&early), mean(&late));
    let error = early_error.standard_error.hypot(late_error.standard_error);
    let differs = (last - first).abs();
    let seen = differs > TREND_WORTH_SAYING * first.max(last) && differs > TREND_ERRORS * error;
    Some(Trend { first, last, seen })
}

/// The first and the last third of so many seconds, wall clock.
pub(super) fn thirds(from_us: u64, seconds: usize) -> Option<((u64, u64), (u64, u64))> {
    let third = seconds / 3;
    let at = |second: usize| from_us + second as u64 * 1_000_000;
    (third >= LEAST_THIRD).then(|| ((at(0), at(third)), (at(seconds - third), at(seconds))))
}

/// Sums over the trials of one case.
#[derive(Debug, Clone, Default)]
pub struct WindowSums {
    inside: PhaseSums,
    outside: PhaseSums,
    pages: Option<PagesWritten>,
    /// By trial, `None` where it has no such checkpoint.
    checkpoints: Vec<(u32, Option<CheckpointWork>)>,
}

#[derive(Debug, Clone, Default)]
struct PhaseSums {
    seconds: u64,
    done: u64,
    latencies: Option<Histogram<u64>>,
}

impl WindowSums {
    /// Adds a trial that was measured.
    pub fn add(&mut self, record: &TrialRecord, seconds: &Seconds, phases: &PhaseLatencies) {
        let Some(window) = &record.window else { return };
        self.checkpoints.push((record.trial, CheckpointWork::of(record)));
        if let Some(done) = seconds.counts(&columns::CLIENT_DONE) {
            for row in 1..done.rows() {
                let Some(in_second) = done.at(row) else { continue };
                match in_checkpoint(window, (row as u64 - 1) * 1_000_000, 1_000_000) {
                    Some(true) => self.inside.add_second(in_second),
                    Some(false) => self.outside.add_second(in_second),
                    None => {}
                }
            }
        }
        self.inside.add_latencies(phases.inside.as_ref());
        self.outside.add_latencies(phases.outside.as_ref());
        self.add_pages(seconds);
    }

    fn add_pages(&mut self, seconds: &Seconds) {
        let grown = |column| seconds.counts(&column).and_then(growth).map(|grown| grown.amount);
        let checkpointer = grown(columns::PG_BUFFERS_CHECKPOINT);
        let background_writer = grown(columns::PG_BUFFERS_BGWRITER);
        let backends = grown(columns::PG_BUFFERS_BACKEND);
        let (Some(checkpointer), Some(background_writer), Some(backends)) = (checkpointer, background_writer, backends)
        else {
            return;
        };
        let sums = self.pages.get_or_insert_with(PagesWritten::default);
        sums.checkpointer += checkpointer;
        sums.background_writer += background_writer;
        sums.backends += backends;
    }

    /// Of all trials; `None` where the window of one has no checkpoint that wrote.
    fn sync_s_per_gb(&self) -> Option<Estimate> {
        let of_trial = |(trial, work): &(u32, Option<CheckpointWork>)| {
            let mean = work.as_ref()?.sync_s_per_gb();
            Some(BlockMean { block: *trial, trial: TrialMean { mean, within: None } })
        };
        over_trials(&self.checkpoints.iter().map(of_trial).collect::<Option<Vec<_>>>()?)
    }

    /// The finding, with the windows of its trials; `None` where no trial has one.
    #[must_use]
    pub fn finding(&self, trials: &[TrialFinding]) -> Option<CaseWindow> {
        let windows: Vec<&TrialWindow> = trials.iter().filter_map(|trial| trial.window.as_ref()).collect();
        let cycles = || windows.iter().map(|window| window.whole_cycles);
        let length: f64 = windows.iter().map(|window| window.length_s).sum();
        let vacuum: f64 = windows.iter().map(|window| window.vacuum_s).sum();
        Some(CaseWindow {
            whole_cycles: (cycles().min()?, cycles().max()?),
            inside: self.inside.finding(),
            outside: self.outside.finding(),
            pages: self.pages,
            sync_s_per_gb: self.sync_s_per_gb(),
            vacuum_share: if length > 0.0 { vacuum / length } else { 0.0 },
        })
    }
}

/// What the checkpoints of one trial did that ended in its window.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckpointWork {
    /// Pages that they wrote, bytes.
    bytes: f64,
    /// Time in their sync phases, microseconds.
    sync_us: u64,
}

impl CheckpointWork {
    /// `None` where no checkpoint that wrote a page ended in the window.
    pub fn of(record: &TrialRecord) -> Option<CheckpointWork> {
        let window = record.window.as_ref()?;
        let done = window.checkpoints.iter().filter(|it| it.started_us <= window.ended_us);
        let done = done.filter_map(|it| it.done.as_ref()).filter(|done| done.ended_us > window.first_operation_us);
        let (pages, sync_us) = done.fold((0, 0), |(pages, us), done| (pages + done.buffers, us + done.sync_us));
        let block_size = record.server.as_ref().and_then(|server| server.key_settings.get("block_size"));
        let page = block_size.and_then(|bytes| bytes.parse().ok()).unwrap_or(PAGE);
        (pages > 0).then_some(CheckpointWork { bytes: pages as f64 * page, sync_us })
    }

    /// Seconds of the sync phase for each GB (10^9 bytes) written.
    pub fn sync_s_per_gb(&self) -> f64 {
        self.sync_us as f64 / 1e6 / (self.bytes / 1e9)
    }
}

impl PhaseSums {
    fn add_second(&mut self, done: u64) {
        self.seconds += 1;
        self.done += done;
    }

    fn add_latencies(&mut self, of_trial: Option<&Histogram<u64>>) {
        let Some(of_trial) = of_trial else { return };
        match &mut self.latencies {
            None => {
                let mut all = of_trial.clone();
                all.auto(true);
                self.latencies = Some(all);
            }
            // Cannot fail: the sum grows with what is added.
            Some(all) => drop(all.add(of_trial)),
        }
    }

    fn finding(&self) -> Phase {
        let latencies = self.latencies.as_ref().filter(|all| !all.is_empty());
        Phase {
            seconds: self.seconds,
            rate: (self.seconds > 0).then(|| self.done as f64 / self.seconds as f64),
            p99_us: latencies.map(|all| all.value_at_quantile(0.99)),
        }
    }
}

/// Whether checkpoints belong to what a case does: it is not known to write nothing.
fn writes(sums: &CaseSums) -> bool {
    let never = sums.operation.as_ref().is_none_or(|operation| operation.writes == Writes::Never);
    !never && sums.strata.read_only() != Some(true)
}

/// What is to be remarked on the windows of a case.
pub fn remarks(found: &CaseFinding, sums: &CaseSums) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let loud =
        sums.trials.iter().filter(|trial| trial.settle.as_ref().is_some_and(|settle| !settle.quiet)).count() as u64;
    let all = sums.trials.len() as u64;
    if loud > 0 {
        let words = "the machine was not idle when {} trials began: the wait for an idle machine timed out";
        remarks.push(Remark::with(Weight::Disturbed, words, Number::Of(loud, all)));
    }
    let windows: Vec<&TrialWindow> = sums.trials.iter().filter_map(|trial| trial.window.as_ref()).collect();
    remarks.extend(without_wal(sums, &windows));
    let Some(window) = found.window.as_ref().filter(|_| writes(sums)) else {
        remarks.extend(thirds_differ(&windows));
        return remarks;
    };
    let count = |wanted: fn(&TrialWindow) -> bool| windows.iter().filter(|window| wanted(window)).count() as u64;
    let short = |words: &str, trials: u64| {
        (trials > 0).then(|| Remark::with(Weight::Short, words, Number::Of(trials, windows.len() as u64)))
    };
    remarks.extend(short(
        "no complete checkpoint cycle in the window of {} trials: figures exclude the cost of checkpoints and of \
         full-page images averaged over a cycle",
        count(|window| window.whole_cycles == 0),
    ));
    remarks.extend(short(
        "the time limit ended {} trials before the requested checkpoint cycles",
        count(|window| window.cut && window.whole_cycles > 0),
    ));
    remarks.extend(short(
        "the warm-up of {} trials ended before two checkpoint cycles agreed: measured unsettled",
        count(|window| window.settled == Some(false)),
    ));
    remarks.extend(short(
        "{} trials have a trend: their last checkpoint cycle differs from the first",
        count(|window| window.whole_cycles >= 2 && window.trend.is_some_and(|trend| trend.seen)),
    ));
    remarks.extend(thirds_differ(&windows));
    if sums
        .operation
        .as_ref()
        .and_then(|operation| operation.settings.get("autovacuum"))
        .is_some_and(|is| is == "deferred")
    {
        remarks.push(Remark::plain(Weight::Short, "autovacuum was deferred: figures exclude its cost"));
    }
    if window.vacuum_share >= VACUUM_WORTH_SAYING {
        let words = "autovacuum ran during {} of the measured time";
        remarks.push(Remark::with(Weight::Machine, words, Number::Share(window.vacuum_share.min(1.0))));
    }
    remarks
}

/// Trials whose rate moved in a window that is not made of checkpoint cycles.
fn thirds_differ(windows: &[&TrialWindow]) -> Option<Remark> {
    let moved = |window: &&&TrialWindow| window.whole_cycles < 2 && window.trend.is_some_and(|trend| trend.seen);
    let moved = windows.iter().filter(moved).count() as u64;
    let words = "{} trials have a trend: the last third of their window differs from the first";
    (moved > 0).then(|| Remark::with(Weight::Short, words, Number::Of(moved, windows.len() as u64)))
}

/// A script that was to be measured over checkpoint cycles, and brought none.
fn without_wal(sums: &CaseSums, windows: &[&TrialWindow]) -> Option<Remark> {
    let idle = |window: &&&TrialWindow| window.asked_cycles.is_some() && window.checkpoints.is_empty();
    let idle: Vec<&&TrialWindow> = windows.iter().filter(idle).collect();
    let longest = idle.iter().map(|window| window.length_s).fold(0.0, f64::max);
    let words = format!(
        "the scripts wrote no WAL, so there was no checkpoint: measured for {longest:.0} s instead of checkpoint cycles"
    );
    (sums.strata.read_only() == Some(true) && !idle.is_empty()).then(|| Remark::plain(Weight::Short, words))
}

/// The first words on a run that was made with `--quick`: what its windows lack, and what of the plan was left out.
#[must_use]
pub fn quick_sentence(cases: &[CaseSums], run: &RunRecord, whole: &QuickOf) -> String {
    let windows = || {
        let writing = cases.iter().filter(|case| writes(case));
        writing.flat_map(|case| &case.trials).filter_map(|trial| trial.window.as_ref())
    };
    let lacks = [
        (
            windows().any(|window| window.whole_cycles == 0),
            "whole checkpoint cycles (checkpoint writes, and full-page images at their usual share)",
        ),
        (windows().any(|window| !window.prefilled), "recycled WAL segments"),
        (windows().any(|window| window.warm_up_cycles == 0), "a warm-up until rates settle"),
    ];
    let lacks: Vec<&str> = lacks.into_iter().filter(|(lacking, _)| *lacking).map(|(_, what)| what).collect();
    let words = match lacks.split_last() {
        None => "This was a quick run.".to_owned(),
        Some((only, [])) => format!("This was a quick run: its windows lack {only}."),
        Some((last, first)) => format!("This was a quick run: its windows lack {} and {last}.", first.join(", ")),
    };
    match part_of_plan(run, whole) {
        Some(part) => format!("{words} {part}"),
        None => words,
    }
}

/// "It had 13 of the plan's 171 cases, 1 block instead of 3, and loop=2GiB."; `None` where nothing was left out.
fn part_of_plan(run: &RunRecord, whole: &QuickOf) -> Option<String> {
    let cases = run.cases.len();
    let fewer = (cases < whole.cases as usize).then(|| format!("{cases} of the plan's {} cases", whole.cases));
    let blocks = if run.blocks == 1 { "block" } else { "blocks" };
    let shorter = (run.blocks < whole.blocks).then(|| format!("{} {blocks} instead of {}", run.blocks, whole.blocks));
    let set: Vec<String> = whole.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let set = (!set.is_empty()).then(|| set.join(", "));
    let parts: Vec<String> = fewer.into_iter().chain(shorter).chain(set).collect();
    let (last, first) = parts.split_last()?;
    Some(if first.is_empty() { format!("It had {last}.") } else { format!("It had {} and {last}.", first.join(", ")) })
}
