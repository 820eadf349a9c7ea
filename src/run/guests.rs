//! A run in guests: which of its trials this program runs, and which it does not retry when it continues by itself.
//!
//! A program in a guest runs its due trials in the run's order, until a trial of another guest is due. It then hands
//! the run over: its caller boots that guest, and the same program continues there. Not here: booting.

use crate::record::case::TrialKey;
use crate::record::event::{Event, Stamped};
use crate::record::run::RunRecord;
use std::collections::{BTreeMap, BTreeSet};

/// Splits the trials of a block into parts of one guest each, with its suite.
pub(super) fn parts<'a>(record: &'a RunRecord, block: &'a [TrialKey]) -> Vec<(Option<&'a str>, &'a [TrialKey])> {
    let guests: BTreeMap<&str, Option<&str>> =
        record.cases.iter().map(|case| (case.id.as_str(), case.guest.as_deref())).collect();
    let guest = |key: &TrialKey| guests.get(key.case.as_str()).copied().flatten();
    block.chunk_by(|one, next| guest(one) == guest(next)).map(|part| (part.first().and_then(guest), part)).collect()
}

/// Trials that ended without figures since a person began or resumed the run. They are not retried before somebody
/// resumes it again: otherwise a rebooted guest would never get past them.
pub(super) fn tried(events: &[Stamped]) -> BTreeSet<TrialKey> {
    let from = events
        .iter()
        .rposition(|event| matches!(event.what, Event::RunStarted { .. } | Event::RunResumed { next_guest: None, .. }));
    let from = from.unwrap_or(0);
    let failed = events[from..].iter().filter_map(|event| match &event.what {
        Event::TrialNotRun { trial, .. } => Some(trial.clone()),
        _ => None,
    });
    failed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::event::Step;

    fn resumed(next_guest: Option<&str>) -> Event {
        Event::RunResumed {
            run: "r".to_owned(),
            done: 0,
            left: 1,
            expected_us: 0,
            most_repeats: 0,
            cases: BTreeMap::new(),
            next_guest: next_guest.map(str::to_owned),
        }
    }

    fn not_run(case: &str) -> Event {
        let trial = TrialKey { case: case.to_owned(), trial: 1 };
        Event::TrialNotRun { trial, step: Step::Check, reason: "no reiserfs".to_owned(), full_after_us: None }
    }

    #[test]
    fn failed_trials_are_retried_only_when_a_person_resumes() {
        let tried = |events: Vec<Event>| {
            let stamped: Vec<Stamped> = events.into_iter().map(|what| Stamped { at_us: 1, what }).collect();
            tried(&stamped).into_iter().map(|key| key.case).collect::<Vec<_>>()
        };
        let handed = || vec![not_run("a"), resumed(Some("trixie")), not_run("b"), resumed(Some("bookworm"))];
        assert_eq!(tried(handed()), ["a", "b"]);
        let mut again = handed();
        again.push(resumed(None));
        assert!(tried(again).is_empty());
    }
}
