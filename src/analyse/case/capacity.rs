//! Highest rate within a latency limit: which steps of each search passed, and the combined result of a case's
//! searches.
//!
//! `record::search` decides if a step passed and `stats::search` evaluates a search, exactly as the driver does to
//! choose its next step.

use crate::analyse::case::measures::MeasureSums;
use crate::analyse::findings::remark::{Remark, Weight};
use crate::analyse::findings::{CapacityFinding, CapacityStep};
use crate::record::operation::Operation;
use crate::record::search::{Failed, SearchCounts};
use crate::stats::interval::TrialMean;
use crate::stats::moments;
use crate::stats::search::{self, Try};
use crate::units::{Micros, significant};
use hdrhistogram::Histogram;

/// Searches of a case, collected over its trials.
#[derive(Debug, Clone, Default)]
pub struct CapacitySums {
    /// Rate that holds in each trial, operations per second.
    holds: Vec<Option<f64>>,
    peaks: Vec<f64>,
    /// Steps limited by the driver.
    by_client: u64,
    steps: Vec<CapacityStep>,
    /// Searches whose steps all passed or all failed.
    open: u64,
}

impl CapacitySums {
    /// Adds the search of a trial with the latencies of its steps, by tag.
    pub fn add(&mut self, trial: u32, search: &SearchCounts, latencies: &[(String, Histogram<u64>)]) {
        let tried = tried(search);
        let found = search::holds(&tried).zip(first_rate(search));
        self.holds.push(found.map(|(rung, first)| first * search::ratio(f64::from(rung))));
        self.peaks.push(search.peak_tps);
        self.open += u64::from(about(search).is_none());
        for (place, step) in (1..).zip(&search.steps) {
            let failed = step.failed_by();
            self.by_client += u64::from(failed == Some(Failed::Client));
            let histogram = latencies.iter().find(|(tag, _)| *tag == step.tag).map(|(_, histogram)| histogram);
            self.steps.push(CapacityStep {
                trial,
                step: place,
                rate: step.rate,
                due: step.due(),
                skipped: step.skipped,
                late: step.late,
                late_share: step.late_share(),
                p99_us: histogram.and_then(|histogram| p99_of_due(histogram, step.due())),
                silent_s: step.silent_s,
                driver_lag_us_mean: step.driver_lag_us_sum as f64 / step.done.max(1) as f64,
                failed_by: failed.map(|failed| failed_words(failed).to_owned()),
            });
        }
    }

    /// Result; `None` for a case without searches.
    pub fn finding(&self, measure: Option<&MeasureSums>, operation: Option<&Operation>) -> Option<CapacityFinding> {
        let operation = operation.filter(|operation| operation.is_searched && !self.holds.is_empty())?;
        let limit_us = operation.latency_limit_us?;
        // By chance, a search may miss the rate that holds (ADR 23); if most do, it is no promise.
        let held: Vec<f64> = self.holds.iter().filter_map(|holds| *holds).collect();
        let (searches, found) = (self.holds.len(), held.len());
        let holds = held.into_iter().reduce(f64::min).filter(|_| 2 * found > searches);
        let sentence = match holds {
            Some(rate) => format!(
                "sustains {} {}: at most 1 % over {}, in three consecutive steps{}",
                significant(rate),
                operation.unit,
                Micros(limit_us),
                match searches {
                    1 => String::new(),
                    _ if found == searches => format!(", in each of {searches} trials"),
                    _ => format!(", in {found} of {searches} trials (in the others no rate did)"),
                }
            ),
            None => format!(
                "no sustained rate: in {} of {searches} trials no rate passed three consecutive steps",
                searches - found
            ),
        };
        Some(CapacityFinding {
            limit_us,
            unit: operation.unit.clone(),
            searches: u32::try_from(searches).unwrap_or(u32::MAX),
            about: measure.and_then(MeasureSums::estimate),
            holds,
            sentence,
            peak: moments::mean(&self.peaks)?,
            steps: self.steps.clone(),
        })
    }

    pub fn remarks(&self) -> Vec<Remark> {
        let late = "the client was the bottleneck in {} steps (pgbench was late)";
        let late = Remark::counted(Weight::Elsewhere, late, self.by_client, self.steps.len() as u64);
        let open = "in {} trials all steps passed, or none: no capacity, not ranked";
        let open = Remark::counted(Weight::Unsure, open, self.open, self.holds.len() as u64);
        late.into_iter().chain(open).collect()
    }
}

/// Capacity found by a search, operations per second, with its error estimated from the steps.
pub fn about(search: &SearchCounts) -> Option<TrialMean> {
    let about = search::about(&tried(search))?;
    let mean = first_rate(search)? * search::ratio(about.rung);
    Some(TrialMean { mean, within: Some(about.within(mean)) })
}

fn tried(search: &SearchCounts) -> Vec<Try> {
    search.steps.iter().map(|step| Try { rung: step.rung, passed: step.failed_by().is_none() }).collect()
}

/// Rate of rung 0.
fn first_rate(search: &SearchCounts) -> Option<f64> {
    search.steps.first().map(|step| step.rate / search::ratio(f64::from(step.rung)))
}

/// 99th percentile, counting skipped and failed operations as slower than all others.
fn p99_of_due(done: &Histogram<u64>, due: u64) -> Option<u64> {
    let quantile = 0.99 * due as f64 / done.len().max(1) as f64;
    (quantile <= 1.0 && !done.is_empty()).then(|| done.value_at_quantile(quantile))
}

fn failed_words(failed: Failed) -> &'static str {
    match failed {
        Failed::Client => "client is the bottleneck",
        Failed::Late => "late",
        Failed::Silent => "seconds without a commit",
        Failed::Behind => "behind the rate",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::search::StepCounts;

    #[test]
    fn skipped_operations_are_slower_than_the_p99_of_completed_ones() {
        let mut done: Histogram<u64> = Histogram::new(3).unwrap();
        (1..=1000).for_each(|us| done.record(us).unwrap());
        assert_eq!(p99_of_due(&done, 1000), Some(990));
        assert_eq!(p99_of_due(&done, 1010), Some(1000));
        assert_eq!(p99_of_due(&done, 1020), None);
    }

    /// A search in which rates up to `limit` passed.
    fn search(limit: f64) -> SearchCounts {
        let mut search = SearchCounts { peak_tps: 1000.0, steps: Vec::new() };
        while search.steps.len() < 14 {
            let rung = search::next(&tried(&search));
            let rate = 700.0 * search::ratio(f64::from(rung));
            let late = if rate > limit { 1000 } else { 0 };
            let done = (rate * 30.0) as u64;
            let step = StepCounts { rung, rate, elapsed_us: 30_000_000, done, late, ..StepCounts::default() };
            search.steps.push(step);
        }
        search
    }

    #[test]
    fn the_capacity_estimate_is_within_five_percent_of_the_truth() {
        let about = about(&search(900.0)).unwrap();
        assert!((about.mean / 900.0 - 1.0).abs() < 0.05, "{about:?}");
        let mut sums = CapacitySums::default();
        sums.add(1, &search(900.0), &[]);
        let one = sums.holds[0].unwrap();
        assert!(one < 900.0 && one > 750.0, "{one}");
        sums.add(2, &search(800.0), &[]);
        assert!(sums.holds[1].unwrap() < 800.0);
        assert_eq!(sums.steps.len(), 28);
        assert!(sums.steps.iter().all(|step| step.failed_by.is_some() == (step.late > 0)));
    }
}
