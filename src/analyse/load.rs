//! From a run folder to findings: reads the input of the analysis, one trial at a time.

use super::analysis::Analysis;
use super::findings::Findings;
use crate::analyse::trial::input::{RunInput, Seconds, TrialInput};
use crate::analyse::trial::window::in_checkpoint;
use crate::analyse::trial::{heat, reads};
use crate::error::{Error, Result};
use crate::host::threads;
use crate::record::case::TrialKey;
use crate::record::counts::Unsent;
use crate::record::event::{Event, Stamped};
use crate::record::probe;
use crate::record::run::RunRecord;
use crate::record::trial::{Outcome, TrialRecord};
use crate::store::folder::{RunFolder, StoredTrial};
use crate::store::{latency, seconds, waits};
use hdrhistogram::Histogram;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::sync_channel;

/// Maximum number of decoding threads; each holds the columns of one trial, about 200 bytes per second of it.
const MOST_READERS: usize = 4;

/// Computes the findings of the run in `folder`.
///
/// # Errors
/// If the folder is not a run folder, is damaged, or was written by a newer pgstrata.
pub fn findings(folder: &Path) -> Result<Findings> {
    Ok(analysis(folder)?.finish())
}

/// The analysis of the run in `folder` with all its trials added.
pub(super) fn analysis(folder: &Path) -> Result<Analysis> {
    let folder = RunFolder::open(folder)?;
    let events = folder.events()?;
    let mut run = folder.record().clone();
    run.order = run.due(events.iter().map(|event| &event.what));
    let due: BTreeSet<TrialKey> = run.order.iter().cloned().collect();
    let (wall_us, measured_us) = spans(!run.merged.is_empty(), &events);
    let mut analysis = Analysis::new(RunInput {
        run,
        plan_text: folder.plan_text()?,
        wall_us,
        measured_us,
        folder: as_word(folder.path()),
        lost_events: None,
        pending: Vec::new(),
        damaged: Vec::new(),
        verdicts: folder.verdicts()?,
        merge: folder.merged()?,
    });
    let mut whole = Vec::new();
    each_trial(&folder, |key, stored| match stored {
        Stored::Whole { trial, aside } => {
            aside.iter().for_each(|record| analysis.add_set_aside(record));
            analysis.add_trial(*trial);
            whole.push(key);
        }
        Stored::Missing if !due.contains(&key) => {}
        Stored::Missing => analysis.input.pending.push(key),
        Stored::Damaged(why) => analysis.input.damaged.push((key, why)),
    })?;
    analysis.input.lost_events = RunFolder::lost_events(&events, whole.iter());
    Ok(analysis)
}

/// A trial of a run folder, with the content of its files.
enum Stored {
    Missing,
    Damaged(String),
    Whole { trial: Box<TrialInput>, aside: Option<Box<TrialRecord>> },
}

/// Reads all trials of a run and passes them on in order, so that sums of the same folder are identical to the last
/// digit. Decoding costs several times as much as the analysis, so it uses several CPUs. Each reader has at most one
/// trial waiting, so memory does not grow with the number of trials.
fn each_trial(folder: &RunFolder, mut each: impl FnMut(TrialKey, Stored)) -> Result<()> {
    let keys = trials(folder);
    let readers = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS);
    std::thread::scope(|scope| {
        let mut turns = Vec::new();
        for reader in 0..readers {
            let (send, receive) = sync_channel(0);
            turns.push(receive);
            let keys = &keys;
            threads::begin(scope, move || {
                for key in keys.iter().skip(reader).step_by(readers) {
                    // The receiver exits only after an error, which also ends the reading.
                    if send.send(read_stored(folder, key)).is_err() {
                        return;
                    }
                }
            })?;
        }
        for (place, key) in keys.iter().enumerate() {
            let stored =
                turns[place % readers].recv().map_err(|_| Error::bug("a thread that reads trials panicked"))?;
            each(key.clone(), stored?);
        }
        Ok(())
    })
}

fn read_stored(folder: &RunFolder, key: &TrialKey) -> Result<Stored> {
    let record = match folder.stored(key)? {
        StoredTrial::Missing => return Ok(Stored::Missing),
        StoredTrial::Damaged(why) => return Ok(Stored::Damaged(why)),
        StoredTrial::Whole(record) => record,
    };
    // A damaged one is ignored anyway.
    let aside = if let StoredTrial::Whole(aside) = folder.set_aside(key)? { Some(aside) } else { None };
    Ok(Stored::Whole { trial: Box::new(read_trial(folder, key, *record)?), aside })
}

/// All trials of a run, case by case in the plan's order.
fn trials(folder: &RunFolder) -> Vec<TrialKey> {
    let RunRecord { cases, blocks, .. } = folder.record();
    let ids = cases.iter().map(|case| &case.id);
    ids.flat_map(|case| (1..=*blocks).map(|trial| TrialKey { case: case.clone(), trial })).collect()
}

fn read_trial(folder: &RunFolder, key: &TrialKey, mut record: TrialRecord) -> Result<TrialInput> {
    if record.outcome != Outcome::Measured {
        return Ok(TrialInput { record, ..TrialInput::default() });
    }
    let path = folder.trial_path(key);
    let Some(counts) = &record.counts else {
        let what = format!("{} was measured, but has no counts", path.join("trial.json").display());
        return Err(Error::store(what).hint("remove the trial's folder, and `pgstrata run --resume` measures it again"));
    };
    if let Some(newer) = counts.probe.as_ref().filter(|probe| probe.format > probe::FORMAT) {
        let what = format!("a probe of format {}; this pgstrata reads up to {}", newer.format, probe::FORMAT);
        return Err(Error::store(what).hint("use the pgstrata that measured it, or a newer one"));
    }
    if let Some(waits) = &mut record.waits {
        waits::read(&path, waits)?;
    }
    let seconds = Seconds::of(seconds::read(&path, reads::wanted)?);
    let mut input = TrialInput { record, seconds, ..TrialInput::default() };
    read_latencies(&path, &mut input)?;
    Ok(input)
}

fn read_latencies(path: &Path, input: &mut TrialInput) -> Result<()> {
    let TrialInput { record, latencies, phases, heat, .. } = input;
    let main = record.counts.as_ref().and_then(|counts| counts.measures.first()).map(|measure| &measure.name);
    let window = record.window.as_ref().filter(|window| !window.checkpoints.is_empty());
    let window = window.filter(|_| record.turns.is_none());
    latency::visit(path, |measure, start_us, length_us, of_interval| {
        if main.is_some_and(|main| main == measure) {
            heat.push(heat::interval(start_us, &of_interval));
            match window.and_then(|window| in_checkpoint(window, start_us, length_us)) {
                Some(true) => latency::add(&mut phases.inside, &of_interval)?,
                Some(false) => latency::add(&mut phases.outside, &of_interval)?,
                None => {}
            }
        }
        latency::merge(latencies, measure, &of_interval)
    })?;
    // Operations never sent waited at least until they could have been.
    for measure in record.counts.iter().flat_map(|counts| &counts.measures) {
        if !measure.unsent.is_empty() {
            latency::merge(latencies, &measure.name, &waited(&measure.unsent)?)?;
        }
    }
    Ok(())
}

/// Minimum waiting times of operations that were never sent.
fn waited(unsent: &[Unsent]) -> Result<Histogram<u64>> {
    let mut waits = Histogram::new(3).map_err(|e| unfit(&e))?;
    for us in unsent.iter().flat_map(|unsent| unsent.waits_us()) {
        waits.record(us).map_err(|e| unfit(&e))?;
    }
    Ok(waits)
}

fn unfit(error: &dyn std::fmt::Display) -> Error {
    Error::bug(format!("waits do not fit into a histogram: {error}"))
}

/// A path quoted as one shell word.
fn as_word(path: &Path) -> String {
    let path = path.display().to_string();
    match path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c)) {
        true => path,
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

/// Wall time of all sessions of a run, microseconds; `None` if it has not ended or was merged.
///
/// # Errors
/// If its events cannot be read.
pub fn wall_us(folder: &RunFolder) -> Result<Option<u64>> {
    Ok(spans(!folder.record().merged.is_empty(), &folder.events()?).0)
}

/// Wall time of all sessions, and the part spent measuring; `None` for a run that has not ended, and for a merged one,
/// since its parts ran at the same time on several machines.
fn spans(is_merged: bool, events: &[Stamped]) -> (Option<u64>, Option<u64>) {
    let ended = events.iter().rev().any(|event| matches!(event.what, Event::RunDone { .. }));
    if !ended || is_merged {
        return (None, None);
    }
    let (mut wall_us, mut measured_us, mut began_us) = (0, 0, 0);
    let mut last_us = 0;
    for event in events {
        match &event.what {
            Event::RunStarted { .. } | Event::RunResumed { .. } | Event::RunExtended { .. } => {
                wall_us += last_us - began_us;
                began_us = event.at_us;
            }
            Event::TrialDone { measured_us: us, .. } => measured_us += us,
            _ => {}
        }
        last_us = event.at_us.max(began_us);
    }
    (Some(wall_us + last_us - began_us), Some(measured_us))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::record::counts::Measure;

    #[test]
    fn unsent_operations_count_in_the_mean_with_their_waiting_time() {
        let unsent = Unsent { count: 200, from_us: 6_000_000, until_us: 8_000_000, free_us: 10_000_000 };
        let waits = waited(&[unsent]).unwrap();
        assert_eq!((waits.len(), waits.min() / 100_000, waits.max() / 100_000), (200, 20, 39));
        let mut all = vec![("x".to_owned(), waits.clone())];
        let mut quick: Histogram<u64> = Histogram::new(3).unwrap();
        quick.record_n(1000, 600).unwrap();
        latency::merge(&mut all, "x", &quick).unwrap();
        assert_eq!(all[0].1.value_at_quantile(0.99) / 100_000, 39);
        let counted = Measure { done: Some(600), latency_us_sum: 600_000, unsent: vec![unsent], ..Measure::default() };
        assert_eq!(counted.latency_us_mean(), Some((600_000.0 + 200.0 * 3e6) / 800.0));
    }

    fn at(at_us: u64, what: Event) -> Stamped {
        Stamped { at_us, what }
    }

    fn done(measured_us: u64) -> Event {
        let trial = TrialKey { case: "c".into(), trial: 1 };
        Event::TrialDone { trial, wall_us: 9, measured_us, rate: None, full_after_us: None }
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(as_word(Path::new("results/2026-11-22-0952-x")), "results/2026-11-22-0952-x");
        assert_eq!(as_word(Path::new("/my runs/o'x")), r"'/my runs/o'\''x'");
    }

    #[test]
    fn the_time_between_two_sittings_does_not_count() {
        let started =
            Event::RunStarted { run: "r".into(), trials: 2, expected_us: 1, most_repeats: 0, cases: BTreeMap::new() };
        let resumed = Event::RunResumed {
            run: "r".into(),
            done: 1,
            left: 1,
            expected_us: 1,
            most_repeats: 0,
            cases: BTreeMap::new(),
            next_guest: None,
        };
        let ended = Event::RunDone { wall_us: 50, measured_us: 30, done: 2, not_run: 0 };
        let mut events = vec![at(100, started), at(140, done(20)), at(9000, resumed), at(9040, done(30))];
        assert_eq!(spans(false, &events), (None, None));
        events.push(at(9050, ended));
        assert_eq!(spans(false, &events), (Some(90), Some(50)));
    }
}
