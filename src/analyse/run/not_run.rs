//! Trials without figures, and why; trials of a case with the same reason share an entry.

use crate::analyse::findings::NotRun;
use crate::record::case::TrialKey;
use crate::record::event::Step;
use std::collections::BTreeMap;

/// Entries in order of their first trial.
#[derive(Debug, Clone, Default)]
pub struct NotRunSums {
    entries: Vec<NotRun>,
    /// Indexes of the entries of each case, since a run may have 100 000 of them.
    of_case: BTreeMap<String, Vec<usize>>,
}

impl NotRunSums {
    /// Adds a trial that ended in `step`.
    pub fn add(&mut self, case: &str, trial: u32, step: Step, reason: &str, hint: Option<&str>) {
        self.merge(case, trial, Some(step.doing()), reason, hint);
    }

    pub fn add_pending(&mut self, key: &TrialKey) {
        let hint = "pgstrata run --resume FOLDER";
        self.merge(&key.case, key.trial, None, "not yet run", Some(hint));
    }

    pub fn add_damaged(&mut self, key: &TrialKey, reason: &str) {
        let hint = "pgstrata run --resume FOLDER measures it again";
        self.merge(&key.case, key.trial, None, &format!("damaged, left out: {reason}"), Some(hint));
    }

    fn merge(&mut self, case: &str, trial: u32, step: Option<&str>, reason: &str, hint: Option<&str>) {
        let of_case = self.of_case.entry(case.to_owned()).or_default();
        let same = of_case.iter().find(|place| {
            let known = &self.entries[**place];
            known.step.as_deref() == step && known.reason == reason && known.hint.as_deref() == hint
        });
        if let Some(place) = same {
            let trials = &mut self.entries[*place].trials;
            trials.insert(trials.partition_point(|known| *known < trial), trial);
            return;
        }
        of_case.push(self.entries.len());
        self.entries.push(NotRun {
            case: case.to_owned(),
            trials: vec![trial],
            step: step.map(str::to_owned),
            reason: reason.to_owned(),
            hint: hint.map(str::to_owned),
        });
    }

    pub fn entries(self) -> Vec<NotRun> {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_with_the_same_reason_are_one_entry() {
        let mut sums = NotRunSums::default();
        sums.add("xfs", 2, Step::Build, "mkfs.xfs not found", Some("apt install xfsprogs"));
        sums.add("xfs", 1, Step::Build, "mkfs.xfs not found", Some("apt install xfsprogs"));
        sums.add("xfs", 3, Step::Load, "disk full", None);
        sums.add("btrfs", 1, Step::Build, "mkfs.xfs not found", Some("apt install xfsprogs"));
        sums.add_pending(&TrialKey { case: "ext4".to_owned(), trial: 3 });
        let entries = sums.entries();
        let seen: Vec<(&str, &[u32])> = entries.iter().map(|e| (e.case.as_str(), e.trials.as_slice())).collect();
        assert_eq!(seen, [("xfs", &[1, 2][..]), ("xfs", &[3]), ("btrfs", &[1]), ("ext4", &[3])]);
        assert_eq!(entries[3].step, None);
    }
}
