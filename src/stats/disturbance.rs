//! Rules for when a measurement counts as disturbed, and when repeating is given up.
//!
//! Both depend only on short probes of the disk before and after it, never on the result: a rule that looked at results
//! would choose among them. Stolen CPU time follows a case's own I/O, so it is no part of the rule
//! (docs/adr/0045-probes-of-the-disk.md).

use super::outliers::median;

/// A probe is off if its rate differs from the median of the last ones by more than this factor.
pub const MOST_OFF: f64 = 3.0;

/// Number of probes, the last ones, that a probe is compared with.
pub const PROBES_COMPARED: usize = 30;

/// With fewer probes before it, a probe is compared with nothing.
const FEWEST_PROBES: usize = 4;

/// A plan may have one repeat per this many trials.
const TRIALS_A_REPEAT: u32 = 5;

/// Repeating is given up after this many repeats that were disturbed too, if they are more than half of all repeats.
const FEWEST_IN_VAIN: u32 = 2;

/// Rate of a probe divided by the median of the [`PROBES_COMPARED`] last ones before it; `None` with too few of them.
pub fn against_the_last(rate: f64, last: &[f64]) -> Option<f64> {
    let usual = median(last).filter(|usual| *usual > 0.0 && last.len() >= FEWEST_PROBES)?;
    Some(rate / usual)
}

/// True if a probe's rate is this far from that of the last ones.
pub fn is_off(ratio: f64) -> bool {
    !(1.0 / MOST_OFF..=MOST_OFF).contains(&ratio)
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
    fn a_probe_is_off_beyond_a_factor_of_three() {
        let before = [4000.0; 12];
        let off = |rate| is_off(against_the_last(rate, &before).unwrap());
        assert_eq!([1300.0, 1400.0, 4000.0, 11_900.0, 12_100.0].map(off), [true, false, false, false, true]);
    }

    #[test]
    fn with_fewer_than_four_probes_none_is_off() {
        assert_eq!(against_the_last(1.0, &[4000.0; 3]), None);
        assert_eq!(against_the_last(1.0, &[0.0; 9]), None, "a disk that never answered has no usual rate");
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
