//! Trials whose stack filled up: a finding for each, and its effect on the figures of the case.

use crate::analyse::findings::remark::{Remark, Weight};
use crate::analyse::findings::{FullFinding, names};
use crate::record::trial::{Outcome, TrialRecord};
use crate::units::count;
use std::collections::BTreeSet;

/// Finding of a trial; `None` if its stack had room.
pub fn of_trial(record: &TrialRecord) -> Option<FullFinding> {
    let full = record.full.as_ref()?;
    let sizes = full.used_bytes.zip(full.size_bytes).filter(|(_, size)| *size > 0);
    Some(FullFinding {
        case: record.case.id.clone(),
        trial: record.trial,
        step: full.step.doing().to_owned(),
        after_s: full.after_us as f64 / 1e6,
        reason: full.reason.clone(),
        used: sizes.map(|(used, size)| used as f64 / size as f64),
        server_log: full.server_log.clone(),
        is_measured: record.outcome == Outcome::Measured,
    })
}

/// Remark on a case's figures.
pub fn remark(found: &[FullFinding], case: &str, trials: usize) -> Option<Remark> {
    let count = found.iter().filter(|one| one.case == case && one.is_measured).count();
    let what = "stack full in {} trials: figures are of the time until then";
    Remark::counted(Weight::Wrong, what, count as u64, trials as u64)
}

/// Sentence to accompany a run's answer.
pub fn sentence(found: &[FullFinding]) -> Option<String> {
    let cases: BTreeSet<&str> = found.iter().map(|one| one.case.as_str()).collect();
    let named = names::first(cases.iter(), 1, "", " and ");
    (!found.is_empty()).then(|| format!("The stack filled up in {} ({named}).", count(found.len(), "trial")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(case: &str, trial: u32, is_measured: bool) -> FullFinding {
        FullFinding {
            case: case.to_owned(),
            trial,
            step: "measuring".to_owned(),
            after_s: 9.5,
            reason: "PANIC".to_owned(),
            used: None,
            server_log: String::new(),
            is_measured,
        }
    }

    #[test]
    fn figures_of_trials_that_ended_early_are_remarked() {
        let found = [full("a", 1, true), full("a", 2, false), full("b", 1, false)];
        assert_eq!(
            remark(&found, "a", 3).unwrap().text(),
            "stack full in 1 of 3 trials: figures are of the time until then"
        );
        assert_eq!(remark(&found, "b", 0), None);
    }

    #[test]
    fn the_answer_of_a_run_says_where_stacks_filled_up() {
        assert_eq!(sentence(&[]), None);
        assert_eq!(sentence(&[full("a", 1, true)]).unwrap(), "The stack filled up in 1 trial (a).");
        let found = [full("a", 1, true), full("a", 2, true), full("b", 1, true)];
        assert_eq!(sentence(&found).unwrap(), "The stack filled up in 3 trials (a and 1 more).");
    }
}
