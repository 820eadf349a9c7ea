//! Everything without figures, and why; trials of a case with the same reason are one entry.

use super::findings::NotRun;
use crate::record::case::TrialKey;
use crate::record::event::Step;

/// Entries in the order in which their first trial came.
#[derive(Debug, Clone, Default)]
pub struct NotRunSums(Vec<NotRun>);

impl NotRunSums {
    /// Adds a trial that ended in `step`.
    pub fn add(&mut self, case: &str, trial: u32, step: Step, reason: &str, hint: Option<&str>) {
        self.merge(case, trial, Some(step.doing()), reason, hint);
    }

    /// Adds a trial that has not been run yet.
    pub fn add_pending(&mut self, key: &TrialKey) {
        let hint = "resume with `pgstrata run --resume`";
        self.merge(&key.case, key.trial, None, "not yet run", Some(hint));
    }

    /// Adds a trial whose files are damaged.
    pub fn add_damaged(&mut self, key: &TrialKey, reason: &str) {
        let hint = "`pgstrata run --resume` measures it again";
        self.merge(&key.case, key.trial, None, &format!("damaged, left out: {reason}"), Some(hint));
    }

    fn merge(&mut self, case: &str, trial: u32, step: Option<&str>, reason: &str, hint: Option<&str>) {
        let same = |known: &&mut NotRun| {
            known.case == case
                && known.step.as_deref() == step
                && known.reason == reason
                && known.hint.as_deref() == hint
        };
        match self.0.iter_mut().find(same) {
            Some(known) => {
                known.trials.push(trial);
                known.trials.sort_unstable();
            }
            None => self.0.push(NotRun {
                case: case.to_owned(),
                trials: vec![trial],
                step: step.map(str::to_owned),
                reason: reason.to_owned(),
                hint: hint.map(str::to_owned),
            }),
        }
    }

    #[must_use]
    pub fn entries(self) -> Vec<NotRun> {
        self.0
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
