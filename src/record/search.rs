//! Counts of a search for the highest rate within a latency limit: one step for each rate tried, and whether it passed.

use serde::{Deserialize, Serialize};

/// The steps of one search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchCounts {
    /// Rate of the warm-up, a closed loop without a limit, operations per second as printed by the tool; the search
    /// begins at 0.7 of it.
    pub peak_tps: f64,
    /// The steps in the order taken.
    pub steps: Vec<StepCounts>,
}

/// One step: all clients together keep to one rate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepCounts {
    /// Its rate as rungs above the first one, each 5 % above the previous.
    pub rung: i32,
    /// Target operations per second, sent at random times.
    pub rate: f64,
    /// Start of its first operation, microseconds after that of the first step.
    pub start_us: u64,
    /// From the start of its first operation to the end of its last, microseconds.
    pub elapsed_us: u64,
    /// Operations done.
    pub done: u64,
    /// Failed.
    pub failed: u64,
    /// Skipped because already later than the limit, or never sent because no client was free before the end of the
    /// step.
    pub skipped: u64,
    /// Completed, but later than the limit, counted from the due time.
    pub late: u64,
    /// Whole seconds in which operations were due and none completed.
    pub silent_s: u64,
    /// Operations that the driver itself started late (its client was free), by more than a tenth of the limit.
    pub lagging: u64,
    /// Sum of the delays caused by the driver itself, microseconds.
    pub driver_lag_us_sum: u64,
    /// Tag of its intervals in `latency.hist`.
    pub tag: String,
}

/// Reason that a step did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// The driver itself was late: the client is the bottleneck.
    Client,
    /// More than 1 % of the operations due were late, skipped or failed.
    Late,
    /// In some seconds operations were due and none completed.
    Silent,
    /// Fewer operations were done than the rate requires.
    Behind,
}

/// Share of the operations due that may be late, skipped or failed, or begun late by the driver.
const LATE_SHARE: f64 = 0.01;

/// Share of the operations offered that must be done.
const ACHIEVED_SHARE: f64 = 0.99;

impl StepCounts {
    /// Operations that were due.
    pub fn due(&self) -> u64 {
        self.done + self.failed + self.skipped
    }

    /// Share of the operations due that were late, skipped or failed; 0 if none was due.
    pub fn late_share(&self) -> f64 {
        share(self.late + self.skipped + self.failed, self.due())
    }

    /// Reason that it did not pass; `None` if it did.
    pub fn failed_by(&self) -> Option<Failed> {
        // Arrivals are random (Poisson), so their number scatters by its square root.
        let offered = self.rate * (self.elapsed_us as f64 / 1e6);
        let behind = (self.done as f64) < ACHIEVED_SHARE * offered - 3.0 * offered.sqrt();
        let conditions = [
            (share(self.lagging, self.done) > LATE_SHARE, Failed::Client),
            (self.late_share() > LATE_SHARE, Failed::Late),
            (self.silent_s > 0, Failed::Silent),
            (behind || self.done == 0, Failed::Behind),
        ];
        conditions.into_iter().find_map(|(is_met, failed)| is_met.then_some(failed))
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_condition_fails_a_step_and_chance_alone_does_not() {
        let good = StepCounts {
            rate: 100.0,
            elapsed_us: 30_000_000,
            done: 2_990,
            skipped: 10,
            late: 20,
            lagging: 20,
            ..StepCounts::default()
        };
        assert_eq!(good.failed_by(), None);
        // Arrivals are random: 2 850 of 3 000 due are within three square roots.
        assert_eq!(StepCounts { done: 2_850, skipped: 0, ..good.clone() }.failed_by(), None);
        for (one, why) in [
            (StepCounts { late: 21, ..good.clone() }, Failed::Late),
            (StepCounts { failed: 1, ..good.clone() }, Failed::Late),
            (StepCounts { silent_s: 1, ..good.clone() }, Failed::Silent),
            (StepCounts { done: 2_790, skipped: 0, ..good.clone() }, Failed::Behind),
            (StepCounts { lagging: 31, ..good.clone() }, Failed::Client),
            (StepCounts { done: 0, skipped: 0, late: 0, ..good.clone() }, Failed::Behind),
        ] {
            assert_eq!(one.failed_by(), Some(why), "{one:?}");
        }
    }
}
