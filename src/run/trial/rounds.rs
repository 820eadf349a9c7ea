//! The cases of a block that stand at once, each with its server, measured round by round: what is compared lies seconds
//! apart ([ADR 46](../../../docs/adr/0046-turns-on-standing-stacks.md)).

use super::window::WindowWatch;
use super::work::{conclude, decide, measurement};
use super::{PREPARE, READ_BACK, RanTrial, STAND, Trial, WARM_UP, ends_the_run, must_be_undone, settle, stored};
use crate::error::{Context, Error, Result};
use crate::host::folders;
use crate::host::time::{micros, now, wall_us};
use crate::plan;
use crate::provision::disk_probe::existing_folder;
use crate::record::case::{CaseSpec, TrialKey};
use crate::record::counts::AllAtWork;
use crate::record::disk_probe::DiskProbe;
use crate::record::event::{Event, Step};
use crate::record::operation::Writes;
use crate::record::turns::TurnRecord;
use crate::run::measure::Measured;
use crate::run::repeats::EarlierProbes;
use crate::run::session::Session;
use crate::run::together::turn_lengths_us;
use crate::run::turns::JoinedTurns;
use crate::run::window;
use crate::units::Micros;
use crate::workload::{Until, WindowProgress};
use std::collections::BTreeSet;

/// Most rounds that are made again: one of so many.
const ROUNDS_A_REPEAT: usize = 5;

/// Rates that differ by more than this factor get turns of equal time.
const MOST_APART: f64 = 4.0;

/// A turn of equal work ends after so many times its length at the latest: twice what the slowest needs. So a disk that has become
/// slow is probed before it is well again.
const MOST_TIMES: u64 = 4;

/// Fewest operations of a client in a turn of equal work.
const LEAST_EACH: u64 = 50;

/// A trial that stands beside others.
struct Standing<'s> {
    trial: Trial<'s>,
    /// Why it gets no further turns.
    failed: Option<Error>,
    lengths_us: Vec<u64>,
    /// Operations per second by which the work of a turn is set; `None`: by time.
    rate: Option<f64>,
    turns: JoinedTurns,
    /// Its turn of the round under way.
    turn: Option<(Measured, TurnRecord)>,
}

/// Runs trials of a block in turns, and stores them.
///
/// # Errors
/// As [`super::run`]; then none of them is stored.
pub fn run(session: &mut Session<'_>, trials: &[(CaseSpec, TrialKey)]) -> Result<Vec<RanTrial>> {
    let mut standing = Vec::with_capacity(trials.len());
    let done = stand_up(session, trials, &mut standing).and_then(|()| rounds(session, &mut standing));
    let done = done.and_then(|()| standing.iter_mut().try_for_each(|one| one.finish(session)));
    session.images.beside.clear();
    // Undoing the first of them ends all processes of the run.
    for one in standing.iter_mut().filter(|one| done.is_ok() && one.failed.is_none()) {
        one.trial.stop_server(session);
    }
    // In reverse: undoing one also undoes what was entered after it.
    let mut ended = Vec::new();
    while let Some(Standing { mut trial, failed, .. }) = standing.pop() {
        let failed = trial.end(session, failed.map_or(Ok(()), Err));
        trial.commands.extend(session.host.take_command_log());
        ended.push((trial, failed));
    }
    done?;
    let mut ran = Vec::new();
    for (trial, done) in ended.into_iter().rev() {
        let wall_us = trial.record.steps.iter().map(|step| step.wall_us).sum();
        ran.push(stored(session, trial, done, wall_us)?);
    }
    must_be_undone(session)?;
    Ok(ran)
}

/// Builds all stacks, starts and warms up all servers, and has them write everything back.
fn stand_up<'s>(
    session: &mut Session<'_>,
    trials: &'s [(CaseSpec, TrialKey)],
    standing: &mut Vec<Standing<'s>>,
) -> Result<()> {
    for (case, key) in trials {
        session.events.emit(Event::TrialStarted { trial: key.clone() })?;
        let (_, span_us) = window::expected_us(case)?;
        standing.push(Standing {
            trial: Trial::new(session, case, key)?,
            failed: None,
            lengths_us: turn_lengths_us(span_us),
            rate: None,
            turns: JoinedTurns::default(),
            turn: None,
        });
    }
    for steps in [PREPARE, STAND, &[WARM_UP]] {
        for (at, one) in standing.iter_mut().enumerate() {
            session.images.beside = trials[..at].iter().map(|(case, _)| case.stack.clone()).collect();
            one.go(session, |trial, session| trial.steps(session, steps))?;
        }
    }
    for one in &mut *standing {
        one.go(session, |trial, session| {
            trial.enter(session, Step::Settle)?;
            trial.watch.as_mut().map_or(Ok(()), WindowWatch::checkpoint)
        })?;
    }
    let last = standing.iter_mut().rfind(|one| one.failed.is_none());
    last.map_or(Ok(()), |one| {
        one.go(session, |trial, session| {
            trial.enter(session, Step::Settle)?;
            settle::wait(session, trial)
        })
    })
}

/// Gives each trial its turns, in rounds.
fn rounds(session: &mut Session<'_>, standing: &mut [Standing<'_>]) -> Result<()> {
    begin(session, standing)?;
    let block = standing.first().map_or(0, |one| one.trial.key.trial);
    let mut earlier = EarlierProbes::of(session.events.writer().folder(), block, &session.machine)?;
    let rounds = standing.iter().map(|one| one.lengths_us.len()).max().unwrap_or(0);
    // Adaptive blocks may end after any look.
    let blocks = session.record.at_least.map_or(session.record.blocks, |least| least.max(block));
    let most_again = rounds * blocks as usize / ROUNDS_A_REPEAT;
    let (mut made, mut number, mut after) = (0, 0u32, None);
    while made < rounds {
        number += 1;
        let going = standing.iter().filter(|one| one.goes_on(made)).map(|one| &one.trial.case.id);
        let going: BTreeSet<&String> = going.collect();
        // In the run's order, not the block's: what follows what is balanced over all blocks.
        let ids = session.record.cases.iter().map(|case| case.id.clone());
        let going: Vec<String> = ids.filter(|id| going.contains(id)).collect();
        if going.is_empty() {
            break;
        }
        let [round, of] = [made + 1, rounds].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        session.events.emit(Event::RoundStarted { round, of })?;
        let before = of.saturating_mul(block.saturating_sub(1));
        for id in plan::round(&going, before.saturating_add(number), session.record.seed) {
            let Some(one) = standing.iter_mut().find(|one| one.trial.case.id == id) else { continue };
            let about = TurnRecord { round: number, after: after.replace(id), ..TurnRecord::default() };
            one.take_turn(session, about, one.lengths_us[made])?;
        }
        let last = standing.iter_mut().find(|one| Some(&one.trial.case.id) == after.as_ref());
        if let Some(Standing { trial, turn: Some((_, about)), .. }) = last.filter(|one| one.has_hit_its_limit(made)) {
            about.probe_after = settle::probe_disk(&session.host, trial);
        }
        let turns = standing.iter().filter_map(|one| one.turn.as_ref());
        let mut probes: Vec<DiskProbe> = turns.flat_map(|(_, about)| about.probes().cloned()).collect();
        probes.sort_by_key(|probe| probe.wall_us);
        let is_off = probes.iter().any(|probe| earlier.is_off(probe));
        let again = is_off && earlier.made_again < most_again;
        earlier.add(&probes);
        for one in &mut *standing {
            match one.turn.take().map(|(turn, about)| (turn, TurnRecord { is_off: Some(is_off), ..about })) {
                Some((turn, about)) if again => one.turns.leave_out(turn, about),
                Some((turn, about)) => one.turns.add(turn, about),
                None => {}
            }
        }
        if again {
            earlier.made_again += 1;
        } else {
            made += 1;
        }
    }
    Ok(())
}

/// Decides what the plan leaves open, and marks where the windows begin.
///
/// Trials with the same workload do the same work in each turn: in turns of equal time a slow stack would stay longer
/// where each page's first change writes a full image.
fn begin(session: &mut Session<'_>, standing: &mut [Standing<'_>]) -> Result<()> {
    for one in &mut *standing {
        one.go(session, |trial, session| {
            decide(session, trial)?;
            trial.record.operation = trial.workload.operation(&trial.options())?;
            trial.watch.as_mut().map_or(Ok(()), |watch| watch.measure_begins(wall_us()))
        })?;
    }
    for at in 0..standing.len() {
        let workload = &standing[at].trial.case.workload;
        let alike = standing.iter().filter(|other| other.failed.is_none() && other.trial.case.workload == *workload);
        let rates: Vec<f64> = alike.filter_map(|other| other.warm_up_rate(session)).collect();
        let own = standing[at].warm_up_rate(session);
        standing[at].rate = own.and_then(|own| common_rate(own, rates));
    }
    Ok(())
}

/// Rate by which the work of a turn is set for most of these rates, its own among them, so that it takes them half of a
/// turn to twice as long; else for most of those that are left. `None` if its own is alone.
fn common_rate(own: f64, mut rates: Vec<f64>) -> Option<f64> {
    rates.sort_by(f64::total_cmp);
    let is_with = |least: f64, rate: &f64| (least..=MOST_APART * least).contains(rate);
    let count = |least: &f64| rates.iter().filter(|rate| is_with(*least, rate)).count();
    let least = rates.iter().copied().rev().max_by_key(count)?;
    let (together, others): (Vec<f64>, Vec<f64>) = rates.iter().copied().partition(|rate| is_with(least, rate));
    match together.last().filter(|_| together.contains(&own)) {
        Some(most) => (together.len() > 1).then(|| (least * most).sqrt()),
        None => common_rate(own, others),
    }
}

impl<'s> Standing<'s> {
    /// Does something with the trial unless it has failed.
    ///
    /// # Errors
    /// That end the run. Others are the trial's.
    fn go(
        &mut self,
        session: &mut Session<'_>,
        act: impl FnOnce(&mut Trial<'s>, &mut Session<'_>) -> Result<()>,
    ) -> Result<()> {
        if self.failed.is_some() {
            return Ok(());
        }
        let done = act(&mut self.trial, session);
        self.trial.commands.extend(session.host.take_command_log());
        if let Err(e) = &done
            && !ends_the_run(e)
        {
            self.trial.note_full(session, e);
        }
        self.trial.end_step();
        match done {
            Err(e) if ends_the_run(&e) => Err(e),
            Err(e) => {
                self.failed = Some(e);
                // One that recovers would do so in the others' turns. Ends it at once.
                self.trial.server = None;
                Ok(())
            }
            done => done,
        }
    }

    /// True if it gets a turn after this many. A full stack gets none.
    fn goes_on(&self, made: usize) -> bool {
        let is_full = self.turns.counts.as_ref().is_some_and(|counts| counts.ended.is_some());
        self.failed.is_none() && !is_full && made < self.lengths_us.len()
    }

    /// True if its turn of this round ended before its work was done.
    fn has_hit_its_limit(&self, round: usize) -> bool {
        let limit_us = MOST_TIMES * self.lengths_us[round];
        self.turn.as_ref().is_some_and(|(_, about)| about.whole_us >= limit_us - limit_us / 10)
    }

    /// Rate of its warm-up, if its turns can be of equal work: clients run as fast as they can and write.
    fn warm_up_rate(&self, session: &Session<'_>) -> Option<f64> {
        let trial = &self.trial;
        let operation = &trial.record.operation;
        let raw = trial.staging.raw();
        let place = trial.place(session, &raw).ok()?;
        let sets_pace = operation.rate.is_none() && operation.writes != Writes::Never;
        trial.workload.warm_up_rate(&place).filter(|_| sets_pace)
    }

    fn take_turn(&mut self, session: &mut Session<'_>, about: TurnRecord, length_us: u64) -> Result<()> {
        let operations = self.rate.map(|rate| (rate * length_us as f64 / 1e6).ceil() as u64);
        // What is done becomes known in pieces of some hundred.
        let clients = self.trial.record.operation.clients.max(1);
        let operations = operations.filter(|operations| operations / clients >= LEAST_EACH);
        self.turns.record.operations = operations.max(self.turns.record.operations);
        let mut taken = None;
        self.go(session, |trial, session| {
            let about = TurnRecord { probe: settle::probe_disk(&session.host, trial), ..about };
            trial.enter_for(session, Step::Measure, Some(length_us))?;
            let mut turn = measure(session, trial, about.round, (length_us, operations))?;
            let began_us = turn.began_us.ok_or_else(|| Error::tool("the workload did nothing in a turn"))?;
            let done = turn.counts.measures.first().and_then(|measure| measure.done).unwrap_or(0);
            let whole_us = turn.counts.elapsed_us;
            let whole = AllAtWork { operations: done, elapsed_us: whole_us };
            let AllAtWork { operations, elapsed_us } = turn.counts.all_at_work.take().unwrap_or(whole);
            let (wal_flush_us, sync_us) = if turn.counts.ended.is_some() { (0, 0) } else { write_back(trial)? };
            let about = TurnRecord { began_us, operations, elapsed_us, whole_us, wal_flush_us, sync_us, ..about };
            turn.idle_from = measurement(session, trial)?.reading();
            taken = Some((turn, about));
            Ok(())
        })?;
        self.turn = taken;
        Ok(())
    }

    /// Puts its turns into the record and into files.
    fn finish(&mut self, session: &mut Session<'_>) -> Result<()> {
        let mut turns = std::mem::take(&mut self.turns);
        self.go(session, |trial, session| {
            let began_us = turns.began_us().ok_or_else(|| Error::tool("no turn of it counts"))?;
            let mut record = trial.record.clone();
            // Below an existing folder the others' turns are counted, too.
            if existing_folder(&trial.case.stack).is_some() {
                turns.record.between.clear();
            }
            turns.store(&measurement(session, trial)?, &mut record)?;
            trial.record = record;
            let watch = trial.watch.take();
            conclude(session, trial, began_us, wall_us(), watch)?;
            // Others had their turns in between.
            if let (Some(full), Some(turns)) = (&mut trial.record.full, &trial.record.turns) {
                full.after_us = full.after_us.min(turns.counted().map(|turn| turn.whole_us).sum());
            }
            trial.steps(session, &[READ_BACK])
        })
    }
}

/// Flushes WAL that no client waited for, then has the filesystems of the stack write back, so that neither falls into
/// the turns of others. Returns the microseconds of both.
fn write_back(trial: &mut Trial<'_>) -> Result<(u64, u64)> {
    let begun = now();
    trial.watch.as_mut().map_or(Ok(()), WindowWatch::flush_wal)?;
    let (wal_flush_us, begun) = (micros(begun.elapsed()), now());
    for folder in trial.stack()?.folders.values() {
        folders::sync_filesystem(folder).or_host(|| format!("write back what a turn left on {}", folder.display()))?;
    }
    Ok((wal_flush_us, micros(begun.elapsed())))
}

/// Measures one turn of a time, or of a number of operations; the tools' output goes into a folder of its own.
fn measure(
    session: &Session<'_>,
    trial: &Trial<'_>,
    round: u32,
    (length_us, operations): (u64, Option<u64>),
) -> Result<Measured> {
    let raw = trial.staging.raw().join(format!("round-{round}"));
    folders::make_all(&raw, 0o755)?;
    let place = trial.place(session, &raw)?;
    let progress = &mut || Ok(WindowProgress::default());
    let longest = Micros(if operations.is_some() { MOST_TIMES * length_us } else { length_us });
    let until = Until { longest, operations, progress };
    measurement(session, trial)?.turn(&place, until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_rates_within_a_factor_of_four_share_their_work() {
        let rates = vec![3700.0, 350.0, 400.0, 700.0];
        let of = |own| common_rate(own, rates.clone());
        assert_eq!(of(350.0), Some((350.0f64 * 700.0).sqrt()));
        assert_eq!(of(350.0), of(700.0));
        assert_eq!(of(3700.0), None, "memory is ten times as fast");
        assert_eq!(common_rate(5.0, vec![5.0]), None, "nothing to compare with");
        let two_kinds = |own| common_rate(own, vec![400.0, 3500.0, 3000.0, 500.0]);
        assert_eq!((two_kinds(400.0), two_kinds(3000.0)), (Some(200_000f64.sqrt()), Some(10_500_000f64.sqrt())));
    }
}
