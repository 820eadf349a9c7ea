//! Steadiness of a case's seconds: spread, seconds without work, stalls.

use crate::analyse::findings::{Steadiness, ZeroSeconds};
use crate::analyse::trial::input::Seconds;
use crate::record::columns;
use crate::stats::outliers;

/// A second counts as whole if the measurement lasted at least until this fraction of a second before its end.
const WHOLE_SECOND_SLACK: f64 = 0.05;

/// Operations in each whole second of a trial, `None` for a gap.
pub fn whole_seconds(seconds: &Seconds, elapsed_us: u64) -> Vec<Option<u64>> {
    let Some(done) = seconds.counts(&columns::CLIENT_DONE) else { return Vec::new() };
    let whole = (elapsed_us as f64 / 1e6 + WHOLE_SECOND_SLACK) as usize;
    (1..done.rows().min(whole + 1)).map(|row| done.at(row)).collect()
}

/// Seconds without an operation among the known whole seconds; `None` if none is known.
pub fn zero_seconds(whole: &[Option<u64>]) -> Option<ZeroSeconds> {
    let mut found = ZeroSeconds::default();
    let mut run = 0;
    for second in whole {
        let is_zero = *second == Some(0);
        run = if is_zero { run + 1 } else { 0 };
        found.seconds += u64::from(second.is_some());
        found.at_zero += u64::from(is_zero);
        found.longest_s = found.longest_s.max(run);
    }
    (found.seconds > 0).then_some(found)
}

#[derive(Debug, Clone, Default)]
pub struct SteadinessSums {
    trials: u64,
    /// Counts of seconds, and the longest stall's place.
    found: Steadiness,
    done: f64,
    squares: f64,
    /// Inner `None` once a trial did not report it.
    idle_us: Option<Option<u64>>,
    stall_us: u64,
}

impl SteadinessSums {
    /// Adds a trial: its whole seconds, and its rows for the slowest operation.
    pub fn add(&mut self, trial: u32, whole: &[Option<u64>], seconds: &Seconds) {
        let Some(zero) = zero_seconds(whole) else { return };
        let known: Vec<f64> = whole.iter().flatten().map(|done| *done as f64).collect();
        let sum = known.iter().sum::<f64>();
        let mean = sum / known.len() as f64;
        self.trials += 1;
        self.found.seconds += known.len() as u64;
        self.done += sum;
        // Around each trial's own mean: a slow trial is not an unsteady one.
        self.squares += known.iter().map(|done| (done - mean).powi(2)).sum::<f64>();
        let median = outliers::median(&known).unwrap_or(0.0);
        self.found.seconds_at_zero += zero.at_zero;
        self.found.seconds_under_tenth += known.iter().filter(|done| **done < median / 10.0).count() as u64;
        self.found.seconds_under_half += known.iter().filter(|done| **done < median / 2.0).count() as u64;
        self.found.longest_zero_s = self.found.longest_zero_s.max(zero.longest_s);
        let idle = seconds.counts(&columns::CLIENT_IDLE_US_MAX).filter(|idle| idle.any());
        let longest = idle.and_then(|idle| (1..=whole.len()).filter_map(|row| idle.at(row)).max());
        self.idle_us = Some(match self.idle_us {
            None => longest,
            Some(known) => known.zip(longest).map(|(known, new)| known.max(new)),
        });
        self.add_stall(trial, seconds);
    }

    fn add_stall(&mut self, trial: u32, seconds: &Seconds) {
        let Some(slowest) = seconds.counts(&columns::CLIENT_LATENCY_US_MAX) else { return };
        for row in 1..slowest.rows() {
            if let Some(us) = slowest.at(row).filter(|us| *us > self.stall_us) {
                self.stall_us = us;
                self.found.longest_stall_at = Some((trial, row as u64));
            }
        }
    }

    /// Result; `slowest_us` is the slowest operation in the histograms, for trials without that column; `None`
    /// if none has latencies.
    pub fn finding(&self, slowest_us: Option<u64>) -> Option<Steadiness> {
        let Steadiness { seconds, longest_stall_at, .. } = self.found;
        let mean = (seconds > 0).then(|| self.done / seconds as f64)?;
        // Operations that ended after the last whole second are only in the histograms, which have three digits.
        let beyond = slowest_us.filter(|slowest| {
            longest_stall_at.is_none() || *slowest > self.stall_us.saturating_add(self.stall_us / 100)
        });
        let degrees = seconds.saturating_sub(self.trials).max(1) as f64;
        Some(Steadiness {
            coefficient_of_variation: if mean > 0.0 { (self.squares / degrees).sqrt() / mean } else { 0.0 },
            longest_idle_us: self.idle_us.flatten(),
            longest_stall_us: slowest_us.map(|_| beyond.unwrap_or(self.stall_us)),
            longest_stall_at: longest_stall_at.filter(|_| slowest_us.is_some() && beyond.is_none()),
            ..self.found.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(done: &[Option<u64>], slowest: &[u64]) -> Seconds {
        let mut seconds = Seconds::new(done.len());
        let present: Vec<bool> = done.iter().map(Option::is_some).collect();
        seconds.push_counts("client_done", done.iter().map(|d| d.unwrap_or(0)).collect(), &present);
        seconds.push_counts("client_latency_us_max", slowest.to_vec(), &vec![true; slowest.len()]);
        seconds
    }

    #[test]
    fn the_second_in_which_the_measurement_ended_is_not_whole() {
        let s = rows(&[None, Some(10), Some(10), Some(1)], &[0; 4]);
        assert_eq!(whole_seconds(&s, 2_100_000), [Some(10), Some(10)]);
        assert_eq!(whole_seconds(&s, 2_960_000).len(), 3);
        assert_eq!(whole_seconds(&s, 9_000_000).len(), 3);
    }

    #[test]
    fn stalls_are_counted_and_the_longest_one_is_found() {
        let done = [None, Some(100), Some(0), Some(0), Some(9), Some(100), Some(40), Some(100), Some(100), Some(100)];
        let s = rows(&done, &[0, 5, 6, 7, 2_900_000, 5, 5, 5, 5, 5]);
        let mut sums = SteadinessSums::default();
        sums.add(2, &whole_seconds(&s, 9_000_000), &s);
        let found = sums.finding(Some(1)).unwrap();
        assert_eq!((found.seconds, found.seconds_at_zero, found.longest_zero_s), (9, 2, 2));
        assert_eq!((found.seconds_under_tenth, found.seconds_under_half), (3, 4));
        assert_eq!((found.longest_stall_us, found.longest_stall_at), (Some(2_900_000), Some((2, 4))));
    }

    #[test]
    fn a_stall_past_the_last_whole_second_counts_as_longest() {
        let s = rows(&[None, Some(10), Some(10)], &[0, 30_000, 32_900]);
        let mut sums = SteadinessSums::default();
        sums.add(1, &whole_seconds(&s, 2_000_000), &s);
        let found = sums.finding(Some(4_034_559)).unwrap();
        assert_eq!((found.longest_stall_us, found.longest_stall_at), (Some(4_034_559), None));
        // The histogram rounds up.
        let found = sums.finding(Some(32_927)).unwrap();
        assert_eq!((found.longest_stall_us, found.longest_stall_at), (Some(32_900), Some((1, 2))));
    }

    #[test]
    fn a_gap_is_no_zero_and_interrupts_consecutive_zeros() {
        let s = rows(&[None, Some(0), None, Some(0), Some(5)], &[0; 5]);
        let mut sums = SteadinessSums::default();
        sums.add(1, &whole_seconds(&s, 4_000_000), &s);
        let found = sums.finding(Some(77)).unwrap();
        assert_eq!((found.seconds, found.seconds_at_zero, found.longest_zero_s), (3, 2, 1));
        assert_eq!((found.longest_stall_us, found.longest_idle_us), (Some(77), None));
        assert_eq!(sums.finding(None).unwrap().longest_stall_us, None);
    }

    #[test]
    fn the_longest_idle_time_needs_figures_of_all_trials() {
        let trial = |idle: &[u64]| {
            let mut s = rows(&[None, Some(5), Some(5), Some(1)], &[0; 4]);
            s.push_counts("client_idle_us_max", idle.to_vec(), &[false, true, true, true]);
            s
        };
        let mut sums = SteadinessSums::default();
        // The third second was cut short; its missing part is not a stall.
        for (number, s) in [(1, trial(&[0, 7_000, 3_000, 990_000])), (2, trial(&[0, 4_000, 9_000, 0]))] {
            sums.add(number, &whole_seconds(&s, 2_010_000), &s);
        }
        assert_eq!(sums.finding(Some(0)).unwrap().longest_idle_us, Some(9_000));
        let silent = rows(&[None, Some(5)], &[0; 2]);
        sums.add(3, &whole_seconds(&silent, 1_000_000), &silent);
        assert_eq!(sums.finding(Some(0)).unwrap().longest_idle_us, None);
    }

    #[test]
    fn a_slow_trial_beside_a_fast_one_is_not_unsteadiness() {
        let mut sums = SteadinessSums::default();
        for (trial, level) in [(1, 100), (2, 200)] {
            let s = rows(&[None, Some(level), Some(level), Some(level)], &[0; 4]);
            sums.add(trial, &whole_seconds(&s, 3_000_000), &s);
        }
        assert_eq!(sums.finding(Some(0)).unwrap().coefficient_of_variation, 0.0);
    }

    #[test]
    fn a_trial_without_any_operations_has_no_infinite_variation() {
        let s = rows(&[None, Some(0), Some(0)], &[0; 3]);
        let mut sums = SteadinessSums::default();
        sums.add(1, &whole_seconds(&s, 2_000_000), &s);
        assert_eq!(sums.finding(Some(0)).unwrap().coefficient_of_variation, 0.0);
    }
}
