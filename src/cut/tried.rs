//! Tries states of a recording: all by the end of WAL, a sample and the worst suspects by all steps.

use super::arithmetic;
use super::cutting::{CutEvent, Finding};
use super::evidence::{self, verdict_of};
use super::judged::{Judged, ModelledDevice};
use super::ladder::{CheckContext, Checker, EndedBy};
use super::pages::Content;
use super::record::RECORDED;
use super::second::SecondCuts;
use super::trying::{Suspect, Trying, Weighed};
use crate::error::{Kind, Result};
use crate::host::time::{micros, now};
use crate::host::{files, paths};
use crate::record::verdict::{StatesTried, Verdict, VerdictRecord};
use crate::recorder::{Class, DeviceModel, Durable, Op, Pick, Seq, State, Tear, Written, select};
use std::collections::BTreeSet;
use std::ops::Range;

/// How many of the worst states convicted by the end of WAL go through all steps.
const SUSPECTS: usize = 3;

/// For each other model of the device, one state is tried per 20 of the honest one.
const HONEST_FOR_OTHER: usize = 20;
/// Lower limit of these.
const LEAST_OF_OTHER: usize = 5;
/// How many of these go through all steps.
const WHOLES_OF_OTHER: usize = 2;
/// Acknowledgements at which such a device is cut while it lacks what the honest one holds, if arithmetic finds no loss:
/// a commit block of a journal is not WAL, and the next flush makes it durable.
const LACKING: usize = 40;

/// Moments with more in-flight requests than this are thinned out: a disk that is never flushed has thousands at each.
const CROWDED: usize = 1000;

/// After this many states that fail once and not again, the machine is blamed.
const MOST_FLUKES: usize = 8;

/// Checkpoints after which a state is always tried.
const MOST_CHECKPOINTS: usize = 10;

/// Bytes at which a torn write convicts, as a severity of its own.
const TORN_PAGE: u32 = 4096;

/// Leaves out of a list that fails what it fails without, in parts that get smaller, until no single one can be left out
/// (ddmin without its complements: Zeller and Hildebrandt, IEEE Trans. Softw. Eng. 28 (2002)).
fn fewest<T: Clone>(mut kept: Vec<T>, fails: impl Fn(&[T]) -> Result<bool>) -> Result<Vec<T>> {
    let mut size = kept.len();
    loop {
        let (before, mut at) = (kept.len(), 0);
        while at < kept.len() {
            let end = kept.len().min(at + size);
            let fewer = [&kept[..at], &kept[end..]].concat();
            if fails(&fewer)? { kept = fewer } else { at = end }
        }
        if size <= 1 && kept.len() == before {
            return Ok(kept);
        }
        size = size.min(kept.len()).div_ceil(2);
    }
}

/// Tries states, records the results, and returns the state the verdict rests on if it convicts.
pub fn try_states(
    judged: &Judged<'_>,
    written: &[Written],
    devices: &[ModelledDevice],
    result: &mut VerdictRecord,
    report: &dyn Fn(CutEvent<'_>),
) -> Result<Option<Suspect>> {
    let Judged { session, case, exports, recorded, work } = *judged;
    let (nodes, history) = (recorded.nodes.as_slice(), &recorded.clients.history);
    let recording = &recorded.recording;
    let Some(honest) = devices.first() else { return Ok(None) };
    let end = State::everything(recording.log().entries(), &honest.durable, recorded.clients.stopped);
    let of = CheckContext { session, case, exports, nodes, history, work };
    let checker = Checker::attach(of, recording.images(&honest.durable, &end))?;
    let trying = Trying { judged, checker, report, written };
    let kept = trying.all(devices, &end, result);
    let left_out = trying.checker.detach();
    let kept = kept?;
    result.left_out.extend(left_out?);
    Ok(kept)
}

impl Trying<'_> {
    fn all(&self, devices: &[ModelledDevice], end: &State, result: &mut VerdictRecord) -> Result<Option<Suspect>> {
        let Some((honest, others)) = devices.split_first() else { return Ok(None) };
        let cutting = self.judged.session.cutting;
        let (states, coverage) = self.chosen(&honest.durable, cutting.states);
        // Data that is never synced fails right after a checkpoint, until the kernel writes it back by itself.
        let checkpoints = self.judged.recorded.clients.history.prepared.iter().rev().take(MOST_CHECKPOINTS);
        let after = checkpoints.map(|one| untorn(Class::Floor, one.checkpoint, Vec::new()));
        let late: Vec<State> = self.extremes(&honest.durable).into_iter().chain(after).collect();
        let classes = Class::WORDS.into_iter().map(|(class, word)| {
            let (tried, of) = coverage.classes.get(&class).copied().unwrap_or_default();
            let tried = tried + late.iter().filter(|state| state.class == class).count();
            let (class, may_fail) = (word.to_owned(), class == Class::TornSector);
            StatesTried { class, tried: tried as u64, of: of.max(tried) as u64, may_fail }
        });
        result.states = classes.collect();
        (self.report)(CutEvent::Checking { case: &self.judged.case.id, states: states.len() });
        let was_idle = coverage.with_play == 0 && !result.verdict.convicts();
        if let Some(why) = self.harness_fault(&honest.durable, end, was_idle)? {
            result.verdict = Verdict::HarnessBroken { why };
            return Ok(None);
        }
        let tails = self.tails("end of WAL", &honest.durable, &states, result)?;
        let whole = [self.worth_all_steps(&honest.durable, &states, &tails, cutting.wholes()), late].concat();
        let wholes = self.wholes("all steps", &whole, result, |state| self.whole(&honest.durable, state))?;
        let convicted = tails.iter().chain(&wholes).any(|found| counts(found) && found.1.convicts());
        let seconds = match convicted || result.verdict.convicts() {
            true => SecondCuts::default(),
            false => self.second_cuts(&honest.durable, &wholes, result)?,
        };
        // If the end of WAL is unknown, only the sample was checked.
        let states = if tails.is_empty() { whole.len() } else { states.len() } + seconds.states;
        let mut found: Vec<Weighed> = tails.into_iter().chain(wholes).collect();
        self.count_torn(&found, result);
        found.retain(counts);
        found.extend(self.on_others(honest, others, result)?);
        let alone = found.into_iter().map(|(state, verdict)| (Suspect { state, second: None }, verdict));
        let all = alone.chain(seconds.found);
        let mut suspects: Vec<(Suspect, Verdict)> =
            all.filter(|(_, verdict)| verdict.weight() > result.verdict.weight() || verdict.convicts()).collect();
        // The worst last; among equals the one that went through all steps, which come last.
        suspects.sort_by_key(|(_, verdict)| verdict.weight());
        let by_arithmetic = result.verdict.clone();
        let (verdict, kept) = worst_confirmed(by_arithmetic, suspects, |kept| self.confirmed(&honest.durable, kept))?;
        result.verdict = verdict;
        if let Verdict::Holds { .. } = result.verdict {
            result.verdict = self.held(states, &whole, result);
        }
        let same = devices.iter().zip(&mut result.devices).filter(|(device, _)| device.durable == honest.durable);
        same.for_each(|(_, on)| on.verdict.clone_from(&result.verdict));
        Ok(kept)
    }

    /// A conviction with fewer in-flight requests if that fails too, else unchanged, with the verdict of a second
    /// check; `None` if the state held then. Keeps the server's log of the second check.
    fn confirmed(&self, durable: &Durable, kept: Suspect) -> Result<Option<(Suspect, Verdict)>> {
        let fewer = match kept.second {
            Some(_) => self.smallest_second(durable, kept.clone())?,
            None => {
                let state = self.smallest(kept.state.clone(), |fewer| self.whole(durable, fewer))?;
                Suspect { state, second: None }
            }
        };
        let tries = if fewer == kept { vec![kept] } else { vec![fewer, kept] };
        let log = self.judged.work.join(evidence::SERVER_LOG);
        for kept in tries {
            files::remove(&log)?;
            let finding = match &kept.second {
                None => self.whole(durable, &kept.state),
                Some(second) => self.again(durable, &kept.state, second),
            };
            let verdict = self.verdict(&kept.state, finding)?;
            if verdict.convicts() || matches!(verdict, Verdict::HarnessBroken { .. }) {
                if paths::exists(&log) {
                    files::move_to(&log, &self.judged.work.join(evidence::CONVICTED_LOG))?;
                }
                return Ok(Some((kept, verdict)));
            }
        }
        Ok(None)
    }

    /// The verdict that no state contradicts, if each kind was tried and a failure would have been noticed.
    fn held(&self, states: usize, whole: &[State], result: &VerdictRecord) -> Verdict {
        let recorded = self.judged.recorded;
        let lacking = result.states.iter().filter(|class| !class.may_fail && class.tried == 0 && class.of > 0);
        let lacking: Vec<&str> = lacking.map(|class| class.class.as_str()).collect();
        let why = if !lacking.is_empty() {
            format!("none of these is among them: {}; take more (--states)", lacking.join(", "))
        } else if !recorded.clients.mends_pages && arithmetic::pages_are_overwritten(&self.judged.case.stack) {
            let torn = whole.iter().filter(|state| state.class == Class::TornPage).flat_map(|state| &state.torn);
            let written = torn.filter_map(|tear| self.written.get(tear.entry));
            let torn: usize = written.map(|written| written.seams.len()).sum();
            format!(
                "full_page_writes is off, and of {torn} pages torn at 4 KiB none was seen to do harm, which is no proof"
            )
        } else {
            return Verdict::Holds { states };
        };
        Verdict::NotMeasured { why: format!("not decided, {states} states: {why}") }
    }

    fn chosen(&self, durable: &Durable, states: usize) -> (Vec<State>, crate::recorder::Coverage) {
        let entries = self.judged.recorded.recording.log().entries();
        let mut moments = self.moments();
        let crowd = moments.last().map_or(0, |last| durable.in_play(entries, *last).len());
        if crowd > CROWDED {
            let keep = moments.len().min(states * 2);
            moments =
                (0..keep).map(|place| moments[place * moments.len() / keep]).chain(moments.last().copied()).collect();
            moments.dedup();
        }
        let pick = Pick { seed: self.judged.session.cutting.seed, states };
        select(entries, durable, &moments, self.written, pick)
    }

    /// Moments for a power failure: at each acknowledgement, and just before each flush took effect, when most requests
    /// are in flight.
    fn moments(&self) -> Vec<Seq> {
        let recorded = self.judged.recorded;
        let flushes = recorded.recording.log().entries().iter().filter(|entry| entry.op == Op::Flush);
        // After the last one the server stops: then a power cut is no crash.
        let last = recorded.clients.history.acknowledged.last().map_or(0, |last| last.mark);
        let flushes = flushes.filter(|flush| flush.completed < last);
        let marks = recorded.clients.history.acknowledged.iter().map(|one| one.mark);
        let moments: BTreeSet<Seq> = marks.chain(flushes.map(|flush| flush.completed)).collect();
        moments.into_iter().collect()
    }

    /// Reads the end of WAL on these states; none if it cannot be known.
    fn tails(
        &self,
        step: &str,
        durable: &Durable,
        states: &[State],
        result: &mut VerdictRecord,
    ) -> Result<Vec<Weighed>> {
        if !self.judged.recorded.clients.history.has_ends() {
            return Ok(Vec::new());
        }
        let begun = now();
        let tails = self.each(step, states, |state| {
            self.checker.tail(&self.judged.recorded.recording.images(durable, state), state.at)
        });
        result.wal_ends_read += states.len() as u64;
        *result.wal_ends_us.get_or_insert_default() += micros(begun.elapsed());
        tails
    }

    /// Takes these states through all steps, as `check` does.
    pub fn wholes(
        &self,
        step: &str,
        states: &[State],
        result: &mut VerdictRecord,
        check: impl Fn(&State) -> Result<Finding>,
    ) -> Result<Vec<Weighed>> {
        let begun = now();
        let wholes = self.each(step, states, check);
        result.recovered += states.len() as u64;
        *result.recovered_us.get_or_insert_default() += micros(begun.elapsed());
        wholes
    }

    fn whole(&self, durable: &Durable, state: &State) -> Result<Finding> {
        self.checker.whole(&self.judged.recorded.recording.images(durable, state), state.at, EndedBy::Cut)
    }

    fn each(&self, step: &str, states: &[State], check: impl Fn(&State) -> Result<Finding>) -> Result<Vec<Weighed>> {
        let mut weighed = Vec::new();
        for (done, state) in states.iter().enumerate() {
            self.judged.session.interrupt.check()?;
            (self.report)(CutEvent::State { case: &self.judged.case.id, step, done, of: states.len() });
            weighed.push((state.clone(), self.verdict(state, check(state))?));
        }
        Ok(weighed)
    }

    /// Verdict on one state.
    pub fn verdict(&self, state: &State, finding: Result<Finding>) -> Result<Verdict> {
        let verdict = match finding {
            Ok(Finding::Lost(loss)) => self.judged.weighed(loss).unwrap_or(Verdict::Holds { states: 1 }),
            Ok(finding) => verdict_of(&finding),
            Err(e) if e.kind() == Kind::Interrupted => return Err(e),
            Err(e) if e.kind() == Kind::Bug => return Ok(Verdict::HarnessBroken { why: e.chain() }),
            Err(e) => return Ok(Verdict::NotMeasured { why: format!("a state could not be checked: {}", e.chain()) }),
        };
        Ok(match state.class == Class::TornPage && verdict.convicts() {
            true => Verdict::Torn { what: verdict.to_string(), unit: Some(TORN_PAGE) },
            false => verdict,
        })
    }

    /// States for all steps: the worst by the end of WAL, then a sample. Half of it are states with torn overwritten
    /// pages, about which the end of WAL says nothing; the rest is taken from the classes in turn.
    fn worth_all_steps(&self, durable: &Durable, states: &[State], tails: &[Weighed], count: usize) -> Vec<State> {
        let mut chosen = suspects(tails, SUSPECTS);
        chosen.extend(self.torn(durable, count / 2));
        let mut classes: Vec<Vec<&State>> = Class::WORDS
            .iter()
            .map(|(class, _)| states.iter().filter(|state| state.class == *class).collect())
            .collect();
        classes.retain(|class| !class.is_empty());
        let each = (count - count / 2).div_ceil(classes.len().max(1));
        chosen.extend(classes.iter().flat_map(|class| spread(class, each)));
        chosen
    }

    /// Moments with the most pages being overwritten that are in no earlier moment, with all of these torn: one by one
    /// they would take hundreds of states.
    fn torn(&self, durable: &Durable, count: usize) -> Vec<State> {
        let entries = self.judged.recorded.recording.log().entries();
        let moments = self.moments();
        let overwritten = self.written.iter().enumerate().filter(|(_, it)| it.kind == Content::Overwritten as u8);
        let overwritten = overwritten.map(|(number, written)| {
            let from = moments.partition_point(|at| *at <= entries[number].submitted);
            let in_play = from..moments.partition_point(|at| *at <= durable.from(number)).max(from);
            (number, &written.seams, in_play)
        });
        let overwritten: Vec<(usize, &Vec<u64>, Range<usize>)> = overwritten.collect();
        let mut left = overwritten.clone();
        let mut states = Vec::new();
        while states.len() < count {
            let mut change = vec![0; moments.len() + 1];
            for (_, seams, during) in &left {
                change[during.start] += seams.len() as i64;
                change[during.end] -= seams.len() as i64;
            }
            let pages = change.iter().scan(0, |sum, change| {
                *sum += change;
                Some(*sum)
            });
            let Some((place, _)) = pages.enumerate().max_by_key(|(_, pages)| *pages).filter(|(_, pages)| *pages > 0)
            else {
                break;
            };
            left.retain(|(_, _, during)| !during.contains(&place));
            let there = overwritten.iter().filter(|(_, _, during)| during.contains(&place));
            let torn = there.map(|(entry, seams, _)| Tear::first_halves(*entry, seams[0]));
            states.push(State { class: Class::TornPage, at: moments[place], extra: Vec::new(), torn: torn.collect() });
        }
        states
    }

    fn count_torn(&self, found: &[Weighed], result: &mut VerdictRecord) {
        [result.torn_pages, result.torn_sectors] = [Class::TornPage, Class::TornSector].map(|class| {
            let failed = found.iter().filter(|(state, verdict)| state.class == class && verdict.convicts());
            failed.map(|(state, _)| (state.at, &state.torn)).collect::<BTreeSet<_>>().len() as u64
        });
    }

    /// Verdicts under the other models of the device. Returns the failures that hold all completed writes, as states of
    /// the honest device, which may leave each of these.
    fn on_others(
        &self,
        honest: &ModelledDevice,
        others: &[ModelledDevice],
        result: &mut VerdictRecord,
    ) -> Result<Vec<Weighed>> {
        let mut failed = Vec::new();
        let count = (self.judged.session.cutting.states / HONEST_FOR_OTHER).max(LEAST_OF_OTHER);
        for (device, place) in others.iter().zip(1..) {
            if device.durable == honest.durable {
                continue;
            }
            let keeps_all = device.name == DeviceModel::PowerProtected.to_string();
            // Disks declared as write-through are judged by that model instead.
            let is_own = keeps_all && self.writes_through();
            let (mut states, _) =
                self.chosen(&device.durable, if is_own { self.judged.session.cutting.states } else { count });
            if !result.devices[place].verdict.convicts() {
                let mut lacking = self.lacking(&honest.durable, &device.durable);
                lacking.retain(|state| !states.contains(state));
                states.extend(lacking);
            }
            let mut other = VerdictRecord::default();
            let tails = self.tails(&device.name, &device.durable, &states, &mut other)?;
            let so_far = tails.iter().map(|(_, verdict)| verdict).chain([&result.devices[place].verdict]);
            let whole = match so_far.into_iter().any(Verdict::convicts) {
                // Recovery of the worst shows if more than commits is lost.
                true => suspects(&tails, 1),
                false => {
                    let wholes = if is_own { self.judged.session.cutting.wholes() } else { WHOLES_OF_OTHER };
                    [self.worth_all_steps(&device.durable, &states, &tails, wholes), self.extremes(&device.durable)]
                        .concat()
                }
            };
            let looked_at = if tails.is_empty() { whole.len() } else { states.len() };
            let wholes = self.wholes(&device.name, &whole, &mut other, |state| self.whole(&device.durable, state))?;
            let by_arithmetic = result.devices[place].verdict.clone();
            let found: Vec<Weighed> =
                tails.into_iter().chain(wholes).filter(|(state, _)| state.class != Class::TornSector).collect();
            let worse = found.iter().filter(|(_, verdict)| keeps_all && verdict.convicts());
            failed.extend(worse.map(|(state, verdict)| (self.as_honest(honest, device, state), verdict.clone())));
            let worst =
                found.into_iter().map(|(_, verdict)| verdict).chain([by_arithmetic]).max_by_key(Verdict::weight);
            result.devices[place].verdict = match worst {
                Some(Verdict::Holds { .. }) | None => Verdict::Holds { states: looked_at },
                Some(worst) => worst,
            };
        }
        Ok(failed)
    }

    /// Acknowledgements at which a device lacks a write that the honest one holds, each with nothing in flight kept.
    fn lacking(&self, honest: &Durable, device: &Durable) -> Vec<State> {
        let marks: Vec<Seq> = self.judged.recorded.clients.history.acknowledged.iter().map(|one| one.mark).collect();
        let floors: Vec<State> =
            honest.ahead_of(device, &marks).into_iter().map(|at| untorn(Class::Floor, at, Vec::new())).collect();
        spread(&floors.iter().collect::<Vec<_>>(), LACKING)
    }

    /// The state of the honest device that keeps the same requests.
    fn as_honest(&self, honest: &ModelledDevice, device: &ModelledDevice, state: &State) -> State {
        let entries = self.judged.recorded.recording.log().entries();
        let lost: BTreeSet<usize> = device.durable.in_play(entries, state.at).into_iter().collect();
        let mut extra = honest.durable.in_play(entries, state.at);
        extra.retain(|number| !lost.contains(number) || state.extra.contains(number));
        State { extra, ..state.clone() }
    }

    /// True if the plan declares every disk to the kernel as write-through, so that no flush is sent.
    fn writes_through(&self) -> bool {
        let of_disk = self.judged.case.stack.nodes.iter().filter(|node| node.layer == RECORDED);
        of_disk.map(|node| node.options.table("queue")).all(|queue| queue.text("write_cache") == Some("write through"))
    }

    /// The last moment with none of the in-flight requests kept, with all, and with all but pages of data: these catch
    /// a server or device that lies about a part of them, which a few random states may not contain.
    fn extremes(&self, durable: &Durable) -> Vec<State> {
        let recorded = self.judged.recorded;
        let at = recorded.clients.history.acknowledged.last().map_or(0, |last| last.mark);
        let in_play = durable.in_play(recorded.recording.log().entries(), at);
        let data = [Content::Data as u8, Content::Overwritten as u8];
        let mut without_data = in_play.clone();
        without_data.retain(|number| self.written.get(*number).is_none_or(|written| !data.contains(&written.kind)));
        [(Class::Floor, Vec::new()), (Class::Ceiling, in_play), (Class::Sample, without_data)]
            .map(|(class, extra)| untorn(class, at, extra))
            .into()
    }

    /// Reduces a state to in-flight requests of which none can be left out if it is to fail at least as badly.
    pub fn smallest(&self, state: State, check: impl Fn(&State) -> Result<Finding>) -> Result<State> {
        let verdict = |state: &State| self.verdict(state, check(state));
        let (least, _) = verdict(&state)?.weight();
        let extra = fewest(state.extra.clone(), |extra| {
            self.judged.session.interrupt.check()?;
            let found = verdict(&State { extra: extra.to_vec(), ..state.clone() })?;
            Ok(found.convicts() && found.weight().0 >= least)
        })?;
        Ok(State { extra, ..state })
    }

    /// Signs that the harness is at fault: the disks after the clean stop fail, or nothing was ever in flight.
    fn harness_fault(&self, durable: &Durable, end: &State, was_idle: bool) -> Result<Option<String>> {
        let recorded = self.judged.recorded;
        let found =
            self.checker.whole(&recorded.recording.images(durable, end), recorded.clients.stopped, EndedBy::Stop)?;
        if !found.is_whole() {
            return Ok(Some(format!("the disks after a clean stop fail: {}", verdict_of(&found))));
        }
        Ok(was_idle.then(|| "no write was ever in flight: no state differs from what was acknowledged".to_owned()))
    }
}

/// False for a failure that convicts nothing.
fn counts((state, verdict): &Weighed) -> bool {
    state.class != Class::TornSector || !verdict.convicts()
}

/// The worst of these that fails again, the last one first, with the new verdict, if arithmetic says nothing worse.
/// Failures of a server for lack of the machine's resources are not blamed on the disk.
fn worst_confirmed(
    by_arithmetic: Verdict,
    mut suspects: Vec<(Suspect, Verdict)>,
    mut confirmed: impl FnMut(Suspect) -> Result<Option<(Suspect, Verdict)>>,
) -> Result<(Verdict, Option<Suspect>)> {
    let mut flukes = 0;
    while let Some((kept, verdict)) = suspects.pop().filter(|_| flukes < MOST_FLUKES) {
        if !verdict.convicts() {
            match flukes {
                0 => return Ok((worse(verdict, by_arithmetic), None)),
                _ => break,
            }
        }
        match confirmed(kept)? {
            Some((kept, again)) => return Ok((worse(again, by_arithmetic), Some(kept))),
            None => flukes += 1,
        }
    }
    if flukes == 0 || by_arithmetic.convicts() {
        return Ok((by_arithmetic, None));
    }
    let why = format!("{flukes} of the states failed, and did not fail when they were checked again");
    Ok((Verdict::NotMeasured { why }, None))
}

fn worse(verdict: Verdict, by_arithmetic: Verdict) -> Verdict {
    if verdict.weight() >= by_arithmetic.weight() { verdict } else { by_arithmetic }
}

fn untorn(class: Class, at: Seq, extra: Vec<usize>) -> State {
    State { class, at, extra, torn: Vec::new() }
}

/// The worst states by the end of WAL.
fn suspects(tails: &[Weighed], count: usize) -> Vec<State> {
    let mut suspects: Vec<&Weighed> = tails.iter().filter(|(_, verdict)| verdict.convicts()).collect();
    suspects.sort_by_key(|(_, verdict)| std::cmp::Reverse(verdict.weight()));
    suspects.into_iter().take(count).map(|(state, _)| state.clone()).collect()
}

/// Picks `count` of them, evenly spaced.
fn spread(states: &[&State], count: usize) -> Vec<State> {
    let count = count.min(states.len());
    (0..count).map(|place| states[place * states.len() / count].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspect(at: Seq, verdict: Verdict) -> (Suspect, Verdict) {
        (
            Suspect { state: State { class: Class::Floor, at, extra: Vec::new(), torn: Vec::new() }, second: None },
            verdict,
        )
    }

    fn torn() -> Verdict {
        Verdict::Torn { what: "x".to_owned(), unit: None }
    }

    /// The verdict, and the position of the state it rests on, if the states at these positions fail again in this way.
    fn worst(by_arithmetic: Verdict, suspects: &[(Seq, Verdict)], again: &[(Seq, Verdict)]) -> (Verdict, Option<Seq>) {
        let suspects = suspects.iter().map(|(at, verdict)| suspect(*at, verdict.clone())).collect();
        let confirmed = |kept: Suspect| {
            let found = again.iter().find(|(at, _)| *at == kept.state.at);
            Ok(found.map(|(_, verdict)| (kept.clone(), verdict.clone())))
        };
        let (verdict, kept) = worst_confirmed(by_arithmetic, suspects, confirmed).unwrap();
        (verdict, kept.map(|kept| kept.state.at))
    }

    #[test]
    fn a_failing_state_is_reduced_to_what_it_needs() {
        let of = |needed: &[u32], all: u32| {
            let tries = std::cell::Cell::new(0);
            let kept = fewest((0..all).collect(), |extra| {
                tries.set(tries.get() + 1);
                Ok(needed.iter().all(|one| extra.contains(one)))
            });
            (kept.unwrap(), tries.get())
        };
        assert_eq!(of(&[], 5000), (Vec::new(), 1), "it fails by what is missing");
        let (kept, tries) = of(&[3, 2900, 4999], 5000);
        assert_eq!(kept, [3, 2900, 4999]);
        assert!(tries < 150, "{tries} tries of 5000 requests");
        assert_eq!(of(&[0, 1, 2, 3, 4, 5, 6], 7).0.len(), 7);
        assert!(fewest(vec![1], |_| Err(crate::error::Error::host("no space"))).is_err());
    }

    #[test]
    fn a_state_that_fails_only_once_does_not_convict() {
        let (holds, lost) = (Verdict::Holds { states: 0 }, Verdict::Loses { commits: 3, us: 7 });
        let both = [(1, lost.clone()), (2, torn())];
        assert_eq!(worst(holds.clone(), &both, &[(1, lost.clone()), (2, torn())]), (torn(), Some(2)));
        assert_eq!(worst(holds.clone(), &both, &[(1, lost.clone())]), (lost.clone(), Some(1)));
        assert_eq!(
            worst(holds.clone(), &both, &[(2, lost.clone())]),
            (lost.clone(), Some(2)),
            "as the second look says"
        );
        let (verdict, kept) = worst(holds.clone(), &both, &[]);
        assert!(matches!(verdict, Verdict::NotMeasured { why } if why.contains("2 of the states")) && kept.is_none());
        // Arithmetic needs no state.
        assert_eq!(worst(lost.clone(), &both, &[]), (lost.clone(), None));
        assert_eq!(worst(lost.clone(), &[], &[]), (lost, None));
        let expected = Verdict::ExpectedLoss { commits: 2, us: 5 };
        assert_eq!(worst(holds.clone(), &[(1, expected.clone())], &[]), (expected, None));
        assert_eq!(worst(holds.clone(), &[], &[]), (holds.clone(), None));
        let many: Vec<(Seq, Verdict)> = (0..100).map(|at| (at, torn())).collect();
        assert!(matches!(worst(holds, &many, &[(0, torn())]), (Verdict::NotMeasured { .. }, None)));
    }
}
