//! One case: accumulates its trials and derives its finding.

use crate::analyse::case::ageing::AgeingSums;
use crate::analyse::case::backend_time::BackendSums;
use crate::analyse::case::capacity::{self, CapacitySums};
use crate::analyse::case::cpu_use::{self, CpuSums};
use crate::analyse::case::drives::DriveSums;
use crate::analyse::case::epochs::EpochSums;
use crate::analyse::case::measures::MeasureSums;
use crate::analyse::case::stages::StageSums;
use crate::analyse::case::steadiness::{SteadinessSums, whole_seconds, zero_seconds};
use crate::analyse::case::strata::{StrataSums, noun};
use crate::analyse::case::synced::{SyncCost, SyncedSums};
use crate::analyse::case::turns::TurnSums;
use crate::analyse::case::window::WindowSums;
use crate::analyse::case::work::WorkSums;
use crate::analyse::findings::groups::item_of;
use crate::analyse::findings::{CaseFinding, Durability, Strata, TrialFinding};
use crate::analyse::trial::counters::Operations;
use crate::analyse::trial::input::{Latencies, TrialInput};
use crate::analyse::trial::rates::rate_of;
use crate::analyse::trial::series::Buckets;
use crate::analyse::trial::{arc, charts, checks, heat, series, waits_over_time, window};
use crate::record::case::CaseSpec;
use crate::record::counts::{Counts, StatementFigures};
use crate::record::facts::Fits;
use crate::record::operation::Operation;
use crate::record::trial::TrialRecord;
use crate::record::verdict::Verdict;
use hdrhistogram::Histogram;

/// How far a wall clock may drift from the monotonic one without being set, in addition to a thousandth of the time:
/// twice what the kernel slews (`adjtimex`).
const CLOCK_SLEWS_US: u64 = 500_000;

#[derive(Debug, Clone, Default)]
pub struct CaseSums {
    pub spec: CaseSpec,
    /// Meaning of one operation; `None` before the first measured trial.
    pub operation: Option<Operation>,
    /// In the order of the first trial.
    pub measures: Vec<MeasureSums>,
    pub trials: Vec<TrialFinding>,
    /// Device and WAL counters.
    pub strata: StrataSums,
    /// The same by trial, per operation.
    pub work: WorkSums,
    pub cpu: CpuSums,
    backends: BackendSums,
    /// Largest share of one CPU used by telemetry in a trial.
    pub telemetry_share: f64,
    /// Share of the operations that was logged, if not all.
    log_sample: Option<f64>,
    steadiness: SteadinessSums,
    fits: Option<Fits>,
    database_bytes: Option<u64>,
    statements: Vec<(StatementFigures, u32)>,
    pub synced: SyncedSums,
    /// Cost of one sync on the storage of its WAL, if another case of the run measured it.
    pub sync_cost: Option<SyncCost>,
    windows: WindowSums,
    pub capacity: CapacitySums,
    pub stages: StageSums,
    pub epochs: EpochSums,
    pub ageing: AgeingSums,
    pub drives: DriveSums,
    /// Largest notable share of supposedly cold reads that the ARC can hold.
    pub arc_holds: Option<f64>,
    /// Cost of a power cut, if determined.
    pub verdict: Option<Verdict>,
    pub turns: TurnSums,
    /// Trial with the largest step of the wall clock, and the step in microseconds.
    pub clock_step: Option<(u32, i64)>,
}

impl CaseSums {
    pub fn new(spec: CaseSpec) -> CaseSums {
        CaseSums { spec, ..CaseSums::default() }
    }

    /// Adds a measured trial; without `buckets`, its series over time are omitted.
    pub(crate) fn add(&mut self, input: TrialInput, buckets: Option<Buckets>) {
        let TrialInput { record, seconds, latencies, phases, heat } = input;
        let counts = record.counts.clone().unwrap_or_default();
        let operation = self.operation.get_or_insert_with(|| record.operation.clone());
        let unit = operation.unit.clone();
        let is_turned = record.turns.is_some();
        let whole = if is_turned { series::per_second(&seconds) } else { whole_seconds(&seconds, counts.elapsed_us) };
        let is_sliced = counts.measures.iter().any(|measure| !measure.slices.is_empty());
        let own: Vec<f64> = whole.iter().flatten().map(|done| *done as f64).collect();
        // If measures take turns, a second has whichever ran; turns of cases share noise that comparisons are without.
        self.add_measures(&record, &counts, (!is_sliced && !is_turned).then_some(own.as_slice()), &latencies);
        let of_turns = record.rate_of_turns();
        let mut found = TrialFinding {
            rate: of_turns.or_else(|| counts.measures.iter().find_map(rate_of)),
            processes: cpu_use::processes(&seconds),
            window: window::of_trial(&record, &counts, &seconds),
            checks: checks::of(&counts, &record.operation),
            ..TrialFinding::default()
        };
        if let Some(search) = &counts.search {
            found.rate = capacity::about(search).map(|about| about.mean);
            self.capacity.add(record.trial, search, &latencies);
        }
        self.stages.add(record.trial, &counts);
        self.epochs.add(&record, &seconds);
        // The seconds of a search depend on its steps, those of a crash on its outage, those of turns on their ends.
        if !is_sliced && !is_turned && counts.search.is_none() && counts.recovery.is_none() {
            found.zero_seconds = zero_seconds(&whole);
            self.steadiness.add(record.trial, &whole, &seconds);
        }
        if let Some(probe) = &counts.probe {
            self.synced.add(probe);
        }
        self.add_facts(&record, &counts);
        self.ageing.add(&record, &seconds, &latencies);
        self.drives.add(&record);
        self.turns.add(&record, &seconds);
        self.arc_holds =
            self.arc_holds.into_iter().chain(arc::holds(&record, &counts, &seconds)).max_by(f64::total_cmp);
        self.windows.add(&record, &seconds, &phases);
        let operations = Operations::of(&seconds);
        self.strata.add(&record, &seconds, &operations);
        self.work.add(&record, &seconds, &operations);
        self.cpu.add(&seconds, &found.processes);
        self.cpu.cpus = record.host.cpus;
        if let Some(waits) = &record.waits {
            self.backends.add(waits, cpu_use::busy_cpus(&seconds, record.host.cpus), self.at_fixed_rate());
        }
        if let Some(most) = buckets {
            let length = if whole.is_empty() { seconds.rows().saturating_sub(1) } else { whole.len() };
            (found.throughput, found.latency_ms_max) = charts::client(&seconds, &whole, most.client, &unit);
            found.telemetry = charts::telemetry(&record, &seconds, length, most.telemetry);
            let timed = length.min(counts.elapsed_us.div_ceil(1_000_000) as usize);
            found.heatmap = heat::heatmap(&heat, timed, most.heatmap);
            found.waits = record.waits.as_ref().zip(record.window.as_ref()).and_then(|(waits, window)| {
                waits_over_time::of_trial(waits, window.first_operation_us, length, most.telemetry)
            });
        }
        let place = self.trials.partition_point(|known| known.trial < record.trial);
        self.trials.insert(place, with_facts(found, record));
    }

    /// Adds the measures of a trial; `seconds` are the operations in its whole seconds, if they say something of its error.
    fn add_measures(&mut self, record: &TrialRecord, counts: &Counts, seconds: Option<&[f64]>, latencies: &Latencies) {
        self.add_counts(record.trial, counts, seconds, latencies);
        self.measures.iter_mut().take(1).for_each(|sums| sums.set_rate(record.trial, record.rate_of_turns()));
        if let Some(share) = record.operation.log_sample.filter(|share| *share < 1.0) {
            self.log_sample = Some(self.log_sample.unwrap_or(share).min(share));
        }
    }

    /// Adds what a trial says about its data, its telemetry and its clock.
    fn add_facts(&mut self, record: &TrialRecord, counts: &Counts) {
        if let Some(data) = record.data.as_ref().filter(|data| Some(data.database_bytes) > self.database_bytes) {
            (self.database_bytes, self.fits) = (Some(data.database_bytes), Some(data.fits));
        }
        if let Some(cost) = record.telemetry_cpu_us.filter(|_| counts.elapsed_us > 0) {
            self.telemetry_share = self.telemetry_share.max(cost as f64 / counts.elapsed_us as f64);
        }
        let step = record.clock_step_us.filter(|step| step.unsigned_abs() > CLOCK_SLEWS_US + counts.elapsed_us / 1000);
        let steps = self.clock_step.into_iter().chain(step.map(|step| (record.trial, step)));
        self.clock_step = steps.max_by_key(|(_, step)| step.unsigned_abs());
    }

    fn add_counts(&mut self, trial: u32, counts: &Counts, seconds: Option<&[f64]>, latencies: &Latencies) {
        let unit = self.operation.as_ref().map_or("", |operation| &operation.unit);
        for (place, measure) in counts.measures.iter().enumerate() {
            let name = &measure.name;
            let sums = item_of(&mut self.measures, |known| known.found.name == *name, || MeasureSums::new(name, unit));
            // The client's columns cover only the main measure.
            let seconds = seconds.filter(|_| place == 0);
            match &counts.search {
                Some(search) => sums.add_search(trial, measure, capacity::about(search)),
                None => sums.add(trial, measure, seconds),
            }
            if let Some((_, histogram)) = latencies.iter().find(|(name, _)| *name == measure.name) {
                sums.add_latencies(trial, measure, histogram);
            }
        }
        for statement in counts.reported.iter().flat_map(|reported| &reported.statements) {
            self.add_statement(statement);
        }
    }

    fn add_statement(&mut self, new: &StatementFigures) {
        if is_assignment(&new.statement) {
            return;
        }
        let mut all = self.statements.iter_mut();
        match all.find(|(known, _)| (&known.script, &known.statement) == (&new.script, &new.statement)) {
            None => self.statements.push((new.clone(), 1)),
            Some((known, trials)) => {
                known.latency_us_mean += new.latency_us_mean;
                known.failures = match (known.failures, new.failures) {
                    (Some(before), Some(now)) => Some(before + now),
                    (before, now) => before.or(now),
                };
                *trials += 1;
            }
        }
    }

    /// Finding with the given durability, without cautions; `blocks` are those in which it is compared.
    pub(crate) fn finding(&self, durability: Durability, blocks: Option<&[u32]>) -> CaseFinding {
        let slowest = self.measures.first().and_then(|sums| sums.latencies.as_ref()).map(Histogram::max);
        CaseFinding {
            id: self.spec.id.clone(),
            axes: self.spec.axes.clone(),
            workload_kind: self.spec.workload.kind.clone(),
            fixed_rate: self.operation.as_ref().and_then(|operation| operation.rate),
            latency_limit_us: self.operation.as_ref().and_then(|operation| operation.latency_limit_us),
            log_sample: self.log_sample,
            trials: u32::try_from(self.trials.len()).unwrap_or(u32::MAX),
            durability,
            verdict: self.verdict.clone(),
            measures: self.measures.iter().map(MeasureSums::finding).collect(),
            capacity: self.capacity.finding(self.measures.first(), self.operation.as_ref()),
            stages: self.stages.findings(),
            snapshots: self.epochs.finding(),
            steadiness: self.steadiness.finding(slowest),
            strata: self.strata_of_one_operation(blocks),
            backend_time: self.backends.finding(&self.cpu, self.at_fixed_rate()),
            fits: self.fits,
            database_bytes: self.database_bytes,
            statements: self.statements(),
            synced: self.synced.finding(),
            window: self.windows.finding(&self.trials),
            cautions: Vec::new(),
            work: self.work.counters(),
        }
    }

    /// `None` if methods take turns: device traffic then belongs to none of them, and each method's rows show its own.
    fn strata_of_one_operation(&self, blocks: Option<&[u32]>) -> Option<Strata> {
        let operation = self.operation.as_ref().filter(|_| !self.measures.iter().any(|measure| measure.is_sliced))?;
        self.strata.finding(noun(&self.spec, operation, self.strata.read_only()), &self.work.within(blocks))
    }

    /// True if its clients run at a fixed rate instead of as fast as they can.
    pub(crate) fn at_fixed_rate(&self) -> bool {
        self.operation.as_ref().is_some_and(|operation| operation.rate.is_some() || operation.is_searched)
    }

    fn statements(&self) -> Vec<StatementFigures> {
        let means = self.statements.iter().map(|(sum, trials)| StatementFigures {
            latency_us_mean: sum.latency_us_mean / f64::from(*trials),
            ..sum.clone()
        });
        means.filter(|statement| statement.latency_us_mean.is_finite()).collect()
    }
}

/// A trial's figures with its facts.
fn with_facts(found: TrialFinding, record: TrialRecord) -> TrialFinding {
    let TrialRecord { case, trial, started, gaps, steps, knobs, stack, server, data, settle, notes, .. } = record;
    let (case, cache_state) = (case.id, data.map(|data| format!("{}; {}", data.cache_state, data.origin)));
    TrialFinding { case, trial, started, gaps, steps, knobs, stack, server, cache_state, settle, notes, ..found }
}

/// True if a script line only sets or tests a pgbench variable, so the server never sees it.
fn is_assignment(line: &str) -> bool {
    matches!(line.split_whitespace().next(), Some("\\set" | "\\if" | "\\endif"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_line_that_sets_a_variable_is_no_statement() {
        assert!(is_assignment("\\set aid random(1, 100000 * :scale)"));
        assert!(!is_assignment("\\sleep 5 ms") && !is_assignment("END;") && !is_assignment("\\setshell x date"));
    }
}
