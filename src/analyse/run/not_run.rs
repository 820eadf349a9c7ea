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
    /// Adds a trial, with the step that it ended in.
    pub fn add(&mut self, key: &TrialKey, step: Option<Step>, reason: &str, hint: Option<&str>) {
        let step = step.map(Step::doing);
        let of_case = self.of_case.entry(key.case.clone()).or_default();
        let same = of_case.iter().find(|place| {
            let known = &self.entries[**place];
            known.step.as_deref() == step && known.reason == reason && known.hint.as_deref() == hint
        });
        if let Some(place) = same {
            let trials = &mut self.entries[*place].trials;
            trials.insert(trials.partition_point(|known| *known < key.trial), key.trial);
            return;
        }
        of_case.push(self.entries.len());
        self.entries.push(NotRun {
            case: key.case.clone(),
            trials: vec![key.trial],
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
        let key = |case: &str, trial| TrialKey { case: case.to_owned(), trial };
        sums.add(&key("xfs", 2), Some(Step::Build), "mkfs.xfs not found", Some("apt install xfsprogs"));
        sums.add(&key("xfs", 1), Some(Step::Build), "mkfs.xfs not found", Some("apt install xfsprogs"));
        sums.add(&key("xfs", 3), Some(Step::Load), "disk full", None);
        sums.add(&key("btrfs", 1), Some(Step::Build), "mkfs.xfs not found", Some("apt install xfsprogs"));
        sums.add(&key("ext4", 3), None, "not yet run", None);
        let entries = sums.entries();
        let seen: Vec<(&str, &[u32])> = entries.iter().map(|e| (e.case.as_str(), e.trials.as_slice())).collect();
        assert_eq!(seen, [("xfs", &[1, 2][..]), ("xfs", &[3]), ("btrfs", &[1]), ("ext4", &[3])]);
        assert_eq!(entries[3].step, None);
    }
}
