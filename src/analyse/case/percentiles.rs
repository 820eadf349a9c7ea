//! Latency percentiles: each trial's own, their mean over trials with its interval, and the ratio to the baseline's.
//!
//! A percentile of all trials' operations together is dominated by the worst trial: for three trials with a p99.9 of 6,
//! 14 and 50 ms the merged one is 25, which none of them had (`docs/adr/0021-percentiles-and-storage-share.md`). It is
//! kept as additional information.

use crate::analyse::findings::Percentile;
use crate::analyse::findings::estimate::over_trials;
use crate::stats::ratio::BlockMean;
use hdrhistogram::Histogram;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    pub name: &'static str,
    pub percent: f64,
    /// Fewest operations per trial: with fewer, the percentile would just be the slowest operation.
    fewest: u64,
}

/// Percentiles of every measure, ascending.
pub const WANTED: [Wanted; 4] = [
    Wanted { name: "p50", percent: 50.0, fewest: 1 },
    Wanted { name: "p95", percent: 95.0, fewest: 20 },
    Wanted { name: "p99", percent: 99.0, fewest: 100 },
    Wanted { name: "p99.9", percent: 99.9, fewest: 1000 },
];

/// Latencies of a trial's completed operations, with counts of those not completed.
#[derive(Debug, Clone, Copy)]
pub struct TrialLatencies<'a> {
    pub trial: u32,
    pub latencies: &'a Histogram<u64>,
    pub done: u64,
    /// Operations skipped because they were already later than the limit, or failed at a fixed rate: slower than any
    /// completed one.
    pub missed: u64,
}

impl TrialLatencies<'_> {
    /// A percentile of all due operations, microseconds, or why there is none.
    fn at(&self, wanted: &Wanted) -> Result<u64, String> {
        let timed = self.latencies.len();
        if timed < wanted.fewest {
            let many = if timed == 1 { "operation was" } else { "operations were" };
            return Err(format!(
                "{timed} {many} timed in trial {}: a {} needs {}",
                self.trial, wanted.name, wanted.fewest
            ));
        }
        let due_for_each_done = 1.0 + self.missed as f64 / self.done.max(1) as f64;
        let quantile = wanted.percent / 100.0 * due_for_each_done;
        if quantile > 1.0 {
            return Err(format!("over the limit: among the operations skipped or failed in trial {}", self.trial));
        }
        Ok(self.latencies.value_at_quantile(quantile))
    }
}

/// One percentile over the trials of a case.
#[derive(Debug, Clone)]
struct Trials {
    wanted: Wanted,
    values: Vec<(u32, u64)>,
    unavailable: Option<String>,
}

/// Percentiles of one measure over the trials of a case.
#[derive(Debug, Clone)]
pub struct Percentiles(Vec<Trials>);

impl Default for Percentiles {
    fn default() -> Percentiles {
        Percentiles(WANTED.map(|wanted| Trials { wanted, values: Vec::new(), unavailable: None }).into())
    }
}

impl Percentiles {
    pub fn add(&mut self, trial: TrialLatencies<'_>) {
        for one in &mut self.0 {
            match trial.at(&one.wanted) {
                Ok(us) => one.values.push((trial.trial, us)),
                Err(reason) => one.unavailable = one.unavailable.take().or(Some(reason)),
            }
        }
    }

    /// One percentile per trial; `None` unless every trial has it, since those without are the slow ones.
    pub fn trials(&self, name: &str) -> Option<Vec<BlockMean>> {
        let one = self.0.iter().find(|one| one.wanted.name == name)?;
        let values = one.values.iter().map(|(block, us)| BlockMean::of(*block, *us as f64));
        (one.unavailable.is_none() && !one.values.is_empty()).then(|| values.collect())
    }

    /// Findings; `merged` are the latencies of all trials.
    pub fn finding(&self, merged: &Histogram<u64>) -> Vec<Percentile> {
        let found = self.0.iter().map(|one| Percentile {
            name: one.wanted.name.to_owned(),
            over_trials: self.trials(one.wanted.name).and_then(|values| over_trials(&values)),
            unavailable: one.unavailable.clone(),
            trials: one.values.clone(),
            merged_us: (merged.len() >= one.wanted.fewest)
                .then(|| merged.value_at_quantile(one.wanted.percent / 100.0)),
            comparison: None,
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(counts: &[(u64, u64)]) -> Histogram<u64> {
        let mut all: Histogram<u64> = Histogram::new(3).unwrap();
        for (us, times) in counts {
            all.record_n(*us, *times).unwrap();
        }
        all
    }

    fn of_trials(trials: &[(Histogram<u64>, u64)]) -> Percentiles {
        let mut sums = Percentiles::default();
        for (trial, (latencies, skipped)) in (1u32..).zip(trials) {
            sums.add(TrialLatencies { trial, latencies, done: latencies.len(), missed: *skipped });
        }
        sums
    }

    fn merged(trials: &[(Histogram<u64>, u64)]) -> Histogram<u64> {
        let mut all: Histogram<u64> = Histogram::new(3).unwrap();
        all.auto(true);
        trials.iter().for_each(|(one, _)| all.add(one).unwrap());
        all
    }

    #[test]
    fn a_percentile_is_the_mean_over_trials() {
        // 1 % of operations take 4 and 5 ms in the first two trials, 50 ms in the third.
        let trials = [4_000, 5_000, 50_000].map(|slow| (histogram(&[(1_000, 9_880), (slow, 120)]), 0));
        let found = of_trials(&trials).finding(&merged(&trials));
        let p999 = &found[3];
        assert_eq!(p999.name, "p99.9");
        assert_eq!(p999.trials.iter().map(|(_, us)| us / 10 * 10).collect::<Vec<_>>(), [4_000, 5_000, 50_010]);
        let over = p999.over_trials.unwrap();
        assert!((over.value - 10_000.0).abs() < 10.0 && over.low.unwrap() < 4_000.0, "{over:?}");
        assert!(p999.merged_us.unwrap() >= 50_000, "{p999:?}");
        assert_eq!(found[0].over_trials.unwrap().value.round(), 1_000.0);
    }

    #[test]
    fn a_percentile_with_too_few_samples_has_a_reason_instead() {
        let trials = [(histogram(&[(1_000, 5_000)]), 0), (histogram(&[(1_000, 612)]), 0)];
        let sums = of_trials(&trials);
        let found = sums.finding(&merged(&trials));
        assert_eq!((found[3].over_trials, sums.trials("p99.9")), (None, None));
        assert_eq!(found[3].unavailable.as_deref(), Some("612 operations were timed in trial 2: a p99.9 needs 1000"));
        assert_eq!((found[3].trials.len(), found[2].over_trials.unwrap().trials), (1, 2));
        let has_p99 = |operations| of_trials(&[(histogram(&[(1_000, operations)]), 0)]).trials("p99").is_some();
        assert_eq!([99, 100].map(has_p99), [false, true]);
    }

    #[test]
    fn operations_skipped_as_late_are_slower_than_all_completed_ones() {
        let done = || histogram(&[(1_000, 970), (2_000, 30)]);
        let at = |skipped, name: &str| of_trials(&[(done(), skipped)]).trials(name).map(|all| all[0].trial.mean);
        assert_eq!((at(0, "p95"), at(25, "p95")), (Some(1_000.0), Some(2_000.0)));
        let trials = [(done(), 25)];
        let found = of_trials(&trials).finding(&merged(&trials));
        assert_eq!(
            found[2].unavailable.as_deref(),
            Some("over the limit: among the operations skipped or failed in trial 1")
        );
    }
}
