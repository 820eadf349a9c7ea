//! A second power cut, while the disks of the first are mounted and PostgreSQL recovers on them.
//!
//! The writes of a recovery are recorded on top of the state that it recovers, in a log of their own. States of that
//! log go through all steps: every commit acknowledged before the first cut must still be there. The server recovers
//! with the settings of its case, including fsync, and the recording ends when it accepts clients.

use super::cutting::Finding;
use super::ladder::EndedBy;
use super::trying::{SecondCut, SecondFailure, Suspect, Trying, Weighed};
use crate::error::Result;
use crate::host::files;
use crate::record::verdict::{StatesTried, Verdict, VerdictRecord};
use crate::recorder::{Class, DeviceModel, Durable, Op, Pick, Recording, Seq, State, select};
use std::collections::BTreeSet;

/// Name of the class in results.
pub const WORD: &str = "second cut";

/// One state in this many is recovered for a second cut.
const STATES_FOR_ONE: usize = 100;
/// Upper limit of these.
const MOST_FIRST: usize = 5;

/// One second-cut state per this many states that go through all steps.
const WHOLES_FOR_ONE: usize = 2;

impl SecondCut {
    /// When each request of the recovery's log became durable.
    pub fn durable(recording: &Recording) -> Durable {
        Durable::of(recording.log().entries(), DeviceModel::Honest)
    }
}

/// Result of second cuts.
#[derive(Default)]
pub struct SecondCuts {
    pub states: usize,
    /// Failures with their verdicts: states of second cuts, and first ones whose recovery failed without one.
    pub found: Vec<(Suspect, Verdict)>,
}

impl Trying<'_> {
    /// Cuts the power a second time on some of these states that hold, and records how many.
    pub fn second_cuts(&self, durable: &Durable, wholes: &[Weighed], result: &mut VerdictRecord) -> Result<SecondCuts> {
        let cutting = self.judged.session.cutting;
        let mut seen = BTreeSet::new();
        let holding = wholes.iter().filter(|(state, verdict)| {
            matches!(verdict, Verdict::Holds { .. } | Verdict::ExpectedLoss { .. }) && state.torn.is_empty()
        });
        // One of each class before a second of any.
        let (first, again): (Vec<&State>, Vec<&State>) =
            holding.map(|(state, _)| state).partition(|state| seen.insert(state.class));
        let most = (cutting.states / STATES_FOR_ONE).clamp(1, MOST_FIRST);
        let firsts: Vec<State> = first.into_iter().chain(again).take(most).cloned().collect();
        let each = (cutting.wholes() / WHOLES_FOR_ONE).div_ceil(firsts.len().max(1));
        let mut cuts = SecondCuts::default();
        let mut of = 0;
        for (state, number) in firsts.into_iter().zip(1..) {
            let log = self.judged.work.join(format!("second-{number}.log"));
            let images = self.judged.recorded.recording.images(durable, &state);
            let failed = match self.checker.recover(&images, &log) {
                Ok(Ok((recording, ready))) => {
                    let (states, there) = chosen(&recording, ready, Pick { seed: cutting.seed, states: each });
                    let durable = SecondCut::durable(&recording);
                    let weighed = self.wholes(WORD, &states, result, |second| {
                        self.checker.whole(&recording.images(&durable, second), state.at, EndedBy::SecondCut)
                    })?;
                    (of, cuts.states) = (of + there, cuts.states + states.len());
                    if !weighed.iter().any(|(_, verdict)| verdict.convicts()) {
                        files::remove(&log)?;
                    }
                    cuts.found.extend(weighed.into_iter().map(|(second, verdict)| {
                        let second = Some(SecondFailure::Cut(SecondCut { log: log.clone(), state: second }));
                        (Suspect { state: state.clone(), second }, verdict)
                    }));
                    continue;
                }
                Ok(Err(finding)) => Ok(finding),
                Err(e) => Err(e),
            };
            files::remove(&log)?;
            let verdict = self.verdict(&state, failed)?;
            cuts.found.push((Suspect { state, second: Some(SecondFailure::Recovery) }, verdict));
        }
        let (class, tried) = (WORD.to_owned(), cuts.states as u64);
        result.states.push(StatesTried { class, tried, of: of as u64, may_fail: false });
        Ok(cuts)
    }

    /// Rechecks a failure that goes beyond a state.
    pub fn again(&self, durable: &Durable, state: &State, second: &SecondFailure) -> Result<Finding> {
        let images = self.judged.recorded.recording.images(durable, state);
        match second {
            SecondFailure::Recovery => {
                let log = self.judged.work.join("second-again.log");
                let done = self.checker.recover(&images, &log)?;
                files::remove(&log)?;
                Ok(done.err().unwrap_or(Finding::Whole))
            }
            SecondFailure::Cut(SecondCut { log, state: second }) => {
                let recording = Recording::open_over(log, images)?;
                let left = recording.images(&SecondCut::durable(&recording), second);
                self.checker.whole(&left, state.at, EndedBy::SecondCut)
            }
        }
    }

    /// Reduces a second cut to as few in-flight requests as possible.
    pub fn smallest_second(&self, durable: &Durable, kept: Suspect) -> Result<Suspect> {
        let Suspect { state, second: Some(SecondFailure::Cut(SecondCut { log, state: second })) } = kept else {
            return Ok(kept);
        };
        let recording = Recording::open_over(&log, self.judged.recorded.recording.images(durable, &state))?;
        let durable = SecondCut::durable(&recording);
        let second = self.smallest(second, |fewer| {
            self.checker.whole(&recording.images(&durable, fewer), state.at, EndedBy::SecondCut)
        })?;
        Ok(Suspect { state, second: Some(SecondFailure::Cut(SecondCut { log, state: second })) })
    }
}

/// States of a recovery that was ready at this position, without tears below 4 KiB; and how many exist.
fn chosen(recording: &Recording, ready: Seq, pick: Pick) -> (Vec<State>, usize) {
    let entries = recording.log().entries();
    let flushes = entries.iter().filter(|entry| entry.op == Op::Flush && entry.completed < ready);
    let moments: BTreeSet<Seq> = flushes.map(|flush| flush.completed).chain([ready]).collect();
    let moments: Vec<Seq> = moments.into_iter().collect();
    let (mut states, coverage) = select(entries, &SecondCut::durable(recording), &moments, &[], pick);
    states.retain(|state| state.class != Class::TornSector);
    let there = coverage.classes.iter().filter(|(class, _)| **class != Class::TornSector);
    (states, there.map(|(_, (_, of))| of).sum())
}
