//! Ends a session whose first trials all fail in the same way before anything is measured.
//!
//! Otherwise a setting that the server rejects, or a failing initdb, would be retried in every trial. Any trial with
//! figures, and any other kind of failure, shows that the problem is not the whole plan's: from then on the run goes to
//! its end.

use crate::error::{Error, Kind};
use crate::record::event::Step;

/// A trial without figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialFailure {
    pub step: Step,
    pub kind: Kind,
    pub reason: String,
    pub hint: Option<String>,
}

/// The trials of a session so far.
#[derive(Debug)]
pub struct FailFast {
    first: Option<TrialFailure>,
    failed: usize,
    most: usize,
    over: bool,
}

/// Fewest trials that must fail: a single failure may be transient.
const LEAST: usize = 3;
/// With more cases than this, not all need to be tried.
const MOST: usize = 10;

impl FailFast {
    /// For a plan of this many cases: each is tried once if they are few.
    pub fn new(cases: usize) -> FailFast {
        FailFast { first: None, failed: 0, most: cases.clamp(LEAST, MOST), over: false }
    }

    /// Records how a trial ended; returns the error that ends the run, if any.
    pub fn see(&mut self, failure: Option<TrialFailure>) -> Option<Error> {
        let Some(failure) = failure else {
            self.over = true;
            return None;
        };
        // Unmet requirements are known before the run, and cost no time.
        if self.over || failure.step == Step::Check {
            return None;
        }
        let first = self.first.get_or_insert_with(|| failure.clone());
        let is_late = matches!(failure.step, Step::Age | Step::Measure | Step::ReadBack | Step::TearDown | Step::Store);
        if is_late || first.step != failure.step || gist(first) != gist(&failure) {
            self.over = true;
            return None;
        }
        self.failed += 1;
        if self.failed < self.most {
            return None;
        }
        let message = format!("stopped: the first {} trials all failed in the same way: {}", self.failed, first.reason);
        // Exit codes of a run that cannot go on: 3 the machine, 4 a program.
        let kind = if first.kind == Kind::Host { Kind::Host } else { Kind::Tool };
        Some(first.hint.iter().fold(Error::new(kind, message), |error, hint| error.hint(hint.clone())))
    }
}

/// The first line without parts that vary between trials: process ids, times, numbered devices, file names.
fn gist(failure: &TrialFailure) -> String {
    let words = failure.reason.lines().next().unwrap_or_default().split_whitespace().filter(|word| !word.contains('/'));
    words.map(|word| word.chars().filter(|c| !c.is_ascii_digit()).collect::<String>() + " ").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(step: Step, reason: &str) -> Option<TrialFailure> {
        Some(TrialFailure { step, kind: Kind::Tool, reason: reason.to_owned(), hint: Some("do so".to_owned()) })
    }

    #[test]
    fn a_run_whose_first_trials_fail_alike_is_stopped() {
        let mut run = FailFast::new(4);
        for pid in 1..4 {
            assert!(run.see(failure(Step::Load, &format!("server {pid} at /run/{pid} ended: bad setting"))).is_none());
        }
        let error = run.see(failure(Step::Load, "server 9 at /run/9 ended: bad setting")).unwrap();
        assert!(error.to_string().contains("the first 4 trials all failed in the same way: server 1"), "{error}");
        assert_eq!((error.kind(), error.hint_text()), (Kind::Tool, Some("do so")));
    }

    #[test]
    fn one_success_or_a_different_failure_lets_the_run_continue() {
        for other in [None, failure(Step::Build, "bad setting"), failure(Step::Load, "no space")] {
            let mut run = FailFast::new(1);
            assert!(run.see(failure(Step::Load, "bad setting")).is_none());
            assert!(run.see(other).is_none());
            let more: Vec<_> = (0..20).filter_map(|_| run.see(failure(Step::Load, "bad setting"))).collect();
            assert!(more.is_empty(), "{more:?}");
        }
    }

    #[test]
    fn missing_features_and_failures_during_measurement_stop_no_run() {
        let (mut lacks, mut measuring) = (FailFast::new(3), FailFast::new(3));
        for _ in 0..10 {
            assert!(lacks.see(failure(Step::Check, "no xfs")).is_none());
            assert!(measuring.see(failure(Step::Measure, "disk full")).is_none());
        }
        let stopped = (0..3).filter_map(|_| lacks.see(failure(Step::Template, "initdb"))).count();
        assert_eq!(stopped, 1);
    }
}
