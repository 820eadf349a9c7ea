//! Measures of one case over its trials: rates with intervals, counts, latencies.

use crate::analyse::case::percentiles::{Percentiles, TrialLatencies};
use crate::analyse::findings::estimate::{at_most, estimate, over_trials};
use crate::analyse::findings::{Estimate, Latency, MeasureFinding};
use crate::analyse::trial::rates::{in_time, rate_of, within};
use crate::record::counts::Measure;
use crate::stats::interval::TrialMean;
use crate::stats::ratio::BlockMean;
use crate::store::latency;
use hdrhistogram::Histogram;

/// Points of the latency curve per halving of the remainder: 50 %, 75 %, 87.5 %, ...
const CURVE_POINTS_PER_HALVING: u32 = 6;

/// One measure over the trials of a case.
#[derive(Debug, Clone, Default)]
pub struct MeasureSums {
    /// Name, unit, and the sums that are reported as they are; without its rate.
    pub found: MeasureFinding,
    /// True if it took turns with other measures, so that its slices are replicates.
    pub is_sliced: bool,
    /// One rate per trial that had the measure.
    pub rates: Vec<BlockMean>,
    pub latencies: Option<Histogram<u64>>,
    pub percentiles: Percentiles,
    /// Share of due operations that completed in time, 0 to 1, by trial.
    pub in_time: Vec<BlockMean>,
    latency_us_sum: u64,
    /// Trials with the measure, and trials without it.
    had: u32,
    lacking: u32,
}

impl MeasureSums {
    /// An empty measure; `unit` is the unit of its rates.
    pub fn new(name: &str, unit: &str) -> MeasureSums {
        let found = MeasureFinding { name: name.to_owned(), unit: unit.to_owned(), ..MeasureFinding::default() };
        MeasureSums { found, ..MeasureSums::default() }
    }

    /// Adds a trial. `seconds` are the operations in its whole seconds, if they are this measure's own.
    pub fn add(&mut self, trial: u32, measure: &Measure, seconds: Option<&[f64]>) {
        self.add_counts(measure);
        self.found.unsent += measure.never_sent();
        let Some(done) = measure.done else {
            self.found.unavailable = self.found.unavailable.take().or_else(|| measure.unavailable.clone());
            self.lacking += 1;
            // Otherwise the luckiest trials, those with the most room, would represent the case.
            self.rates.clear();
            return;
        };
        self.had += 1;
        self.found.done += done;
        self.latency_us_sum += measure.latency_us_sum + measure.waited_us();
        self.is_sliced |= !measure.slices.is_empty();
        if let Some(mean) = rate_of(measure).filter(|_| self.lacking == 0) {
            let within = within(measure, seconds);
            self.rates.push(BlockMean { block: trial, trial: TrialMean { mean, within } });
        }
        self.in_time.extend(in_time(measure).map(|mean| BlockMean::of(trial, mean)));
    }

    /// Replaces the rate of the trial added last by that of its turns, which ends when fewer clients are left.
    pub fn set_rate(&mut self, trial: u32, rate: Option<f64>) {
        if let Some((last, mean)) = self.rates.last_mut().filter(|rate| rate.block == trial).zip(rate) {
            last.trial.mean = mean;
        }
    }

    /// Adds a trial whose steps ran at different rates; `rate` is their combined result.
    pub fn add_search(&mut self, trial: u32, measure: &Measure, rate: Option<TrialMean>) {
        self.add_counts(measure);
        self.found.done += measure.done.unwrap_or(0);
        self.rates.extend(rate.map(|rate| BlockMean { block: trial, trial: rate }));
        if rate.is_none() {
            let why = "at least one search ended without a capacity: its steps all passed or all failed";
            self.found.unavailable = Some(why.to_owned());
        }
        if self.found.unavailable.is_some() {
            // The others would be the best of its trials.
            self.rates.clear();
        }
    }

    fn add_counts(&mut self, measure: &Measure) {
        self.found.failed += measure.failed;
        self.found.skipped += measure.skipped;
        self.found.late += measure.late;
    }

    pub fn add_latencies(&mut self, number: u32, measure: &Measure, trial: &Histogram<u64>) {
        if !trial.is_empty() {
            let done = measure.done.unwrap_or(0) + measure.never_sent();
            // At a fixed rate with a limit, a failed operation was not in time either.
            let failed = if in_time(measure).is_some() { measure.failed } else { 0 };
            let missed = measure.skipped + failed;
            self.percentiles.add(TrialLatencies { trial: number, latencies: trial, done, missed });
        }
        // Cannot fail: the sum grows as needed.
        latency::add(&mut self.latencies, trial).ok();
    }

    /// Mean rate over all trials, with the interval from these trials alone.
    pub fn estimate(&self) -> Option<Estimate> {
        estimate(&self.rates)
    }

    pub fn finding(&self) -> MeasureFinding {
        let rate = self.estimate();
        let missing = self.missing().unwrap_or_else(|| "no trial has figures for it".to_owned());
        MeasureFinding {
            unavailable: rate.is_none().then_some(missing),
            rate,
            latency: self.latencies.as_ref().filter(|all| !all.is_empty()).map(|all| self.latency(all)),
            in_time: over_trials(&self.in_time).map(|share| at_most(1.0, share)),
            ..self.found.clone()
        }
    }

    /// Why it has no rate, and in how many trials if not in all.
    pub fn missing(&self) -> Option<String> {
        if !self.is_partial() {
            return self.found.unavailable.clone();
        }
        let why = self.found.unavailable.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        Some(format!("missing in {} of {} trials{why}", self.lacking, self.had + self.lacking))
    }

    /// True if only some trials had it.
    pub fn is_partial(&self) -> bool {
        self.had > 0 && self.lacking > 0
    }

    fn latency(&self, all: &Histogram<u64>) -> Latency {
        let MeasureFinding { done, unsent, .. } = self.found;
        let exact = (done > 0 && self.latency_us_sum > 0).then(|| self.latency_us_sum as f64 / (done + unsent) as f64);
        Latency {
            mean_us: exact.unwrap_or_else(|| all.mean()),
            percentiles: self.percentiles.finding(all),
            max_us: all.max(),
            curve: curve(all),
        }
    }
}

/// (percentile, microseconds), ascending; each step halves the distance to 100 and is divided evenly.
fn curve(all: &Histogram<u64>) -> Vec<(f64, u64)> {
    let mut points: Vec<(f64, u64)> = Vec::new();
    for step in all.iter_quantiles(CURVE_POINTS_PER_HALVING) {
        // Eight decimals resolve one operation in ten thousand million.
        let percentile = (step.quantile_iterated_to() * 1e10).round() / 1e8;
        let value = step.value_iterated_to().clamp(all.min(), all.max());
        match points.last_mut() {
            Some(last) if last.0 >= percentile => last.1 = last.1.max(value),
            _ => points.push((percentile, value)),
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::counts::MeasureSlice;
    use crate::record::counts::Unsent;

    fn sums() -> MeasureSums {
        MeasureSums::new("fdatasync", "ops/s")
    }

    /// `slices` are the operations of one-second turns.
    fn measure(done: u64, elapsed_s: f64, slices: &[u64]) -> Measure {
        let slice = |operations: &u64| MeasureSlice { operations: *operations, elapsed_ns: 1_000_000_000 };
        Measure {
            name: "fdatasync".to_owned(),
            done: Some(done),
            elapsed_us: (elapsed_s * 1e6) as u64,
            slices: slices.iter().map(slice).collect(),
            ..Measure::default()
        }
    }

    #[test]
    fn slices_that_hang_together_tell_less_than_independent_ones() {
        // Ten slow turns, ten fast ones, and so on, compared with slow and fast turns alternating.
        let drifting: Vec<u64> = (0..40).map(|turn| if turn / 10 % 2 == 0 { 90 } else { 110 }).collect();
        let mixed: Vec<u64> = (0..40).map(|turn| if turn % 2 == 0 { 90 } else { 110 }).collect();
        let width = |slices: &[u64]| {
            let mut sums = sums();
            (1..=3).for_each(|trial| sums.add(trial, &measure(4000, 40.0, slices), None));
            let rate = sums.estimate().unwrap();
            rate.high.unwrap() - rate.low.unwrap()
        };
        assert!(width(&drifting) > 2.0 * width(&mixed), "{} {}", width(&drifting), width(&mixed));
    }

    #[test]
    fn two_trials_give_a_range_and_three_give_an_interval() {
        let mut sums = sums();
        sums.add(1, &measure(1000, 10.0, &[98, 100, 102, 100]), None);
        let rate = sums.estimate().unwrap();
        assert_eq!((rate.value, rate.trials, rate.low, rate.range), (100.0, 1, None, None));
        sums.add(2, &measure(1500, 10.0, &[]), None);
        let rate = sums.estimate().unwrap();
        assert_eq!((rate.low, rate.range), (None, Some((100.0, 150.0))));
        sums.add(3, &measure(1200, 10.0, &[]), None);
        let rate = sums.estimate().unwrap();
        assert!(rate.low.unwrap() > 0.0 && rate.range.is_none(), "{rate:?}");
        assert_eq!(sums.finding().unit, "ops/s");
    }

    #[test]
    fn an_unavailable_measure_has_a_reason_and_no_rate() {
        let missing = Measure { done: None, unavailable: Some("EINVAL".to_owned()), ..measure(0, 1.0, &[]) };
        let mut sums = sums();
        sums.add(1, &missing, None);
        let finding = sums.finding();
        assert_eq!((finding.rate, finding.unavailable.as_deref(), finding.latency), (None, Some("EINVAL"), None));
    }

    #[test]
    fn a_measure_that_any_trial_lacks_has_no_rate() {
        let missing = Measure { done: None, unavailable: Some("no room".to_owned()), ..measure(0, 1.0, &[]) };
        for trials in [[&missing, &measure(9, 1.0, &[])], [&measure(9, 1.0, &[]), &missing]] {
            let mut sums = sums();
            (1..).zip(trials).for_each(|(number, trial)| sums.add(number, trial, None));
            let finding = sums.finding();
            assert_eq!((finding.rate, sums.is_partial()), (None, true));
            assert_eq!(finding.unavailable.as_deref(), Some("missing in 1 of 2 trials: no room"));
        }
    }

    #[test]
    fn a_trial_that_took_no_time_has_no_rate() {
        assert_eq!(rate_of(&measure(7, 0.0, &[])), None);
    }

    #[test]
    fn the_mean_latency_is_exact_for_the_counted_operations() {
        let mut sums = sums();
        let mut latencies: Histogram<u64> = Histogram::new(3).unwrap();
        latencies.record_n(5_003, 1_000).unwrap();
        let counted = Measure { latency_us_sum: 5_003_000, ..measure(1000, 10.0, &[]) };
        sums.add(1, &counted, None);
        sums.add_latencies(1, &counted, &latencies);
        let latency = sums.finding().latency.unwrap();
        assert_eq!((latency.mean_us, latency.percentiles.len()), (5_003.0, 4));
    }

    #[test]
    fn failed_skipped_and_late_operations_are_not_in_time() {
        let counted = Measure { failed: 10, skipped: 40, late: 50, ..measure(950, 10.0, &[]) };
        let mut sums = sums();
        sums.add(1, &counted, None);
        assert_eq!(sums.finding().in_time.unwrap().value, 0.9);
        let unsent = Unsent { count: 1000, from_us: 6_000_000, until_us: 8_000_000, free_us: 10_000_000 };
        let mut sums = self::sums();
        sums.add(1, &Measure { unsent: vec![unsent], ..counted }, None);
        assert_eq!((sums.finding().in_time.unwrap().value, sums.finding().unsent), (0.45, 1000));
    }

    #[test]
    fn the_curve_grows_denser_towards_the_slowest_operation() {
        let mut all: Histogram<u64> = Histogram::new(3).unwrap();
        for value in 1..=100_000u64 {
            all.record(value).unwrap();
        }
        let curve = curve(&all);
        assert!(curve.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
        assert_eq!(curve.last(), Some(&(100.0, all.max())));
        assert!(curve.iter().filter(|point| point.0 > 99.0).count() > 20, "{}", curve.len());
        assert!(curve.len() < 200);
    }
}
