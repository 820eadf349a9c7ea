//! Rules for when a measurement counts as disturbed, and when repeating is given up.
//!
//! Both depend only on the CPU time that others used, never on the result: a rule that looked at results would choose
//! among them.

/// CPU time used by others during a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TakenShares {
    /// CPU time of programs that are not part of the run, divided by wall time: 1 is one whole CPU.
    pub others: f64,
    /// Time given to other guests by the hypervisor, divided by the time of all CPUs.
    pub stolen: f64,
}

/// Maximum of [`TakenShares::others`] in an undisturbed measurement.
pub const MOST_OTHERS: f64 = 0.05;

/// Maximum of [`TakenShares::stolen`] in an undisturbed measurement.
pub const MOST_STOLEN: f64 = 0.02;

/// A plan may have one repeat per this many trials.
const TRIALS_A_REPEAT: u32 = 5;

/// Repeating is given up after this many repeats that were disturbed too, if they are more than half of all repeats.
const FEWEST_IN_VAIN: u32 = 2;

impl TakenShares {
    /// Computes the shares from the length of a measurement in microseconds and, in nanoseconds, the time of all CPUs,
    /// the stolen part of it, and the CPU time of other programs.
    pub fn of(elapsed_us: u64, cpus_ns: u64, stolen_ns: u64, others_ns: u64) -> TakenShares {
        TakenShares {
            others: if elapsed_us > 0 { others_ns as f64 / 1e3 / elapsed_us as f64 } else { 0.0 },
            stolen: if cpus_ns > 0 { stolen_ns as f64 / cpus_ns as f64 } else { 0.0 },
        }
    }

    pub fn is_disturbed(self) -> bool {
        self.others > MOST_OTHERS || self.stolen > MOST_STOLEN
    }
}

/// Maximum repeats of a plan with this many trials.
pub fn most_repeats(trials: u32) -> u32 {
    trials / TRIALS_A_REPEAT
}

/// True if another repeat is worth its time in a run of `trials` planned trials, after `repeats` of which `in_vain`
/// were disturbed too. A machine that is never quiet then costs a run two repeats, not a fifth of all trials.
pub fn may_repeat(trials: u32, repeats: u32, in_vain: u32) -> bool {
    let is_futile = in_vain >= FEWEST_IN_VAIN && 2 * in_vain > repeats;
    repeats < most_repeats(trials) && !is_futile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceeding_any_one_limit_makes_a_measurement_disturbed() {
        let disturbed = |others, stolen| TakenShares { others, stolen }.is_disturbed();
        assert!(!disturbed(0.05, 0.02));
        assert!(disturbed(0.051, 0.0) && disturbed(0.0, 0.021));
    }

    #[test]
    fn others_count_in_cpus_and_steal_as_a_share() {
        // 10 s on 4 CPUs: others used 0.6 s, the hypervisor took 0.6 s.
        let taken = TakenShares::of(10_000_000, 40_000_000_000, 600_000_000, 600_000_000);
        assert_eq!(taken, TakenShares { others: 0.06, stolen: 0.015 });
        assert_eq!(TakenShares::of(0, 0, 0, 0), TakenShares { others: 0.0, stolen: 0.0 });
    }

    #[test]
    fn repeats_are_limited_to_a_fifth_of_the_trials() {
        let made = |trials: u32, is_vain: fn(u32) -> bool| {
            let (mut repeats, mut in_vain) = (0, 0);
            while may_repeat(trials, repeats, in_vain) {
                repeats += 1;
                in_vain += u32::from(is_vain(repeats));
            }
            repeats
        };
        assert_eq!([4, 5, 9, 10, 60].map(|trials| made(trials, |_| false)), [0, 1, 1, 2, 12]);
        assert_eq!(made(60, |nth| nth % 2 == 1), 3, "after two in three");
        assert_eq!(made(60, |nth| nth % 2 == 0), 12, "half of them help");
    }

    #[test]
    fn a_machine_that_is_never_quiet_costs_only_two_repeats() {
        assert!(may_repeat(1000, 1, 1));
        assert!(!may_repeat(1000, 2, 2));
    }
}
