//! When a measurement was disturbed, and when repeating disturbed ones is given up.
//!
//! Both depend on what others took of the CPUs alone, never on what was measured: a rule that looked at the result would
//! choose among results.

/// Time that others took of the CPUs during a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Taken {
    /// CPU time of programs that are not part of the run, over the wall time: 1 is one whole CPU.
    pub others: f64,
    /// Time that the hypervisor gave to other guests, over the time of all CPUs.
    pub stolen: f64,
}

/// Most of one CPU that other programs take from a measurement that counts as undisturbed.
pub const MOST_OTHERS: f64 = 0.05;

/// Most of the time of all CPUs that the hypervisor gives away in a measurement that counts as undisturbed.
pub const MOST_STOLEN: f64 = 0.02;

/// One repeat for so many trials of the plan, at most.
const TRIALS_A_REPEAT: u32 = 5;

/// Repeats that must have been disturbed as well, and be more than half of all, before repeating is given up.
const FEWEST_IN_VAIN: u32 = 2;

impl Taken {
    /// From times of one measurement: its length in microseconds, the time of all CPUs, the part of it that was stolen, and
    /// the CPU time of other programs, these three in nanoseconds.
    #[must_use]
    pub fn of(elapsed_us: u64, cpus_ns: u64, stolen_ns: u64, others_ns: u64) -> Taken {
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Taken {
            others: share(others_ns as f64 / 1e3, elapsed_us as f64),
            stolen: share(stolen_ns as f64, cpus_ns as f64),
        }
    }

    #[must_use]
    pub fn is_disturbed(self) -> bool {
        self.others > MOST_OTHERS || self.stolen > MOST_STOLEN
    }
}

/// Repeats that a plan of so many trials may have.
#[must_use]
pub fn most_repeats(trials: u32) -> u32 {
    trials / TRIALS_A_REPEAT
}

/// Whether one more repeat is worth its time in a run of `trials` planned ones, after `repeats` of which `in_vain` were
/// disturbed as well. A machine that is never quiet costs a run two trials, not a fifth of all.
#[must_use]
pub fn may_repeat(trials: u32, repeats: u32, in_vain: u32) -> bool {
    let is_futile = in_vain >= FEWEST_IN_VAIN && 2 * in_vain > repeats;
    repeats < most_repeats(trials) && !is_futile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_alone_makes_a_measurement_disturbed_and_at_the_limit_it_is_not() {
        let disturbed = |others, stolen| Taken { others, stolen }.is_disturbed();
        assert!(!disturbed(0.05, 0.02));
        assert!(disturbed(0.051, 0.0) && disturbed(0.0, 0.021));
    }

    #[test]
    fn others_are_counted_in_cpus_and_stolen_time_as_a_share_of_all_of_them() {
        // 10 s on 4 CPUs; others had 0.6 s, the hypervisor took 0.6 s.
        let taken = Taken::of(10_000_000, 40_000_000_000, 600_000_000, 600_000_000);
        assert_eq!(taken, Taken { others: 0.06, stolen: 0.015 });
        assert_eq!(Taken::of(0, 0, 0, 0), Taken { others: 0.0, stolen: 0.0 });
    }

    #[test]
    fn repeats_end_at_a_fifth_of_the_trials_on_a_machine_that_is_quiet_at_times() {
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
    fn a_machine_that_is_never_quiet_costs_two_repeats_however_long_the_run_is() {
        assert!(may_repeat(1000, 1, 1));
        assert!(!may_repeat(1000, 2, 2));
    }
}
