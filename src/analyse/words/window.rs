//! Text about windows: remarks on those of a case, and limitations of a quick run.

use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::lists::list;
use crate::analyse::findings::remark::{Remark, Weight};
use crate::analyse::findings::{CaseFinding, TrialWindow};
use crate::record::operation::Writes;
use crate::record::run::{QuickOf, RunRecord};
use std::collections::BTreeSet;

/// Autovacuum's share of the time above which it is reported.
const VACUUM_WORTH_SAYING: f64 = 0.01;

/// True unless the case is known to write nothing: then checkpoints are part of its work.
fn writes(sums: &CaseSums) -> bool {
    let never = sums.operation.as_ref().is_none_or(|operation| operation.writes == Writes::Never);
    !never && sums.strata.read_only() != Some(true)
}

/// What is said of windows, and which.
type ShortWindow = (&'static str, fn(&TrialWindow) -> bool);

/// Remarks on the windows of a case. The short windows of a quick run are mentioned with its answer.
pub fn remarks(found: &CaseFinding, sums: &CaseSums, is_quick: bool) -> Vec<Remark> {
    let loud = sums.trials.iter().filter(|trial| trial.settle.as_ref().is_some_and(|settle| !settle.quiet)).count();
    let words = "machine not idle when {} trials began (the wait timed out)";
    let loud = Remark::counted(Weight::Disturbed, words, loud as u64, sums.trials.len() as u64);
    let mut remarks = Vec::from_iter(loud);
    let windows: Vec<&TrialWindow> = sums.trials.iter().filter_map(|trial| trial.window.as_ref()).collect();
    remarks.extend(without_wal(sums, &windows));
    remarks.extend(checkpoint_in_turns(sums, &windows));
    let words = "turns of {} trials took under 0.4 s: slow warm-up before them";
    remarks.extend(Remark::counted(Weight::Short, words, sums.turns.short, sums.trials.len() as u64));
    let Some(window) = found.window.as_ref().filter(|_| writes(sums)) else {
        remarks.extend(thirds_differ(&windows));
        return remarks;
    };
    let short: [ShortWindow; 4] = [
        ("no whole checkpoint cycle in {} trials: its cost is missing", |window| window.whole_cycles == 0),
        ("{} trials cut by the time limit: fewer cycles than requested", |window| {
            window.cut && window.whole_cycles > 0
        }),
        ("{} trials measured unsettled: no two warm-up cycles agreed", |window| window.settled == Some(false)),
        ("{} trials have a trend: last cycle unlike the first", |window| {
            window.whole_cycles >= 2 && window.trend.is_some_and(|trend| trend.seen)
        }),
    ];
    let short = short.into_iter().skip(usize::from(is_quick));
    remarks.extend(short.filter_map(|(words, is_it)| of_trials(&windows, words, is_it)));
    remarks.extend(thirds_differ(&windows));
    let settings = sums.operation.as_ref().map(|operation| &operation.settings);
    if settings.is_some_and(|settings| settings.get("autovacuum").is_some_and(|is| is == "deferred")) {
        remarks.push(Remark::plain(Weight::Short, "autovacuum was deferred: figures exclude its cost"));
    }
    let vacuum = Some(window.vacuum_share.min(1.0)).filter(|share| *share >= VACUUM_WORTH_SAYING);
    remarks.extend(Remark::of_share(Weight::Machine, "autovacuum ran during {} of the measured time", vacuum));
    remarks
}

/// Trials whose turns a checkpoint fell into: their WAL outgrew the room that there is for it.
fn checkpoint_in_turns(sums: &CaseSums, windows: &[&TrialWindow]) -> Option<Remark> {
    let words = "checkpoint in turns of {} trials: stack too small for their WAL";
    of_trials(windows, words, |window| {
        !sums.turns.turns.is_empty() && window.checkpoints.iter().any(|checkpoint| checkpoint.start_s > 0.0)
    })
}

/// Trials whose rate drifted in a window that is not made of checkpoint cycles.
fn thirds_differ(windows: &[&TrialWindow]) -> Option<Remark> {
    let words = "{} trials have a trend: last third unlike the first";
    of_trials(windows, words, |window| window.whole_cycles < 2 && window.trend.is_some_and(|trend| trend.seen))
}

fn of_trials(windows: &[&TrialWindow], words: &str, is_it: impl Fn(&TrialWindow) -> bool) -> Option<Remark> {
    let trials = windows.iter().filter(|window| is_it(window)).count() as u64;
    Remark::counted(Weight::Short, words, trials, windows.len() as u64)
}

/// A script that was to be measured over checkpoint cycles but caused none.
fn without_wal(sums: &CaseSums, windows: &[&TrialWindow]) -> Option<Remark> {
    let idle = windows.iter().filter(|window| window.asked_cycles.is_some() && window.checkpoints.is_empty());
    let longest =
        idle.map(|window| window.length_s).reduce(f64::max).filter(|_| sums.strata.read_only() == Some(true))?;
    let words = format!("no WAL, so no checkpoint: measured for {longest:.0} s instead of cycles");
    Some(Remark::plain(Weight::Short, words))
}

/// Final sentence on a `--quick` run, after the answer: limits of its windows, and the omitted part of the plan.
pub fn quick_sentence(cases: &[CaseSums], run: &RunRecord, whole: &QuickOf) -> String {
    let trials = cases.iter().filter(|case| writes(case)).flat_map(|case| &case.trials);
    let windows: Vec<&TrialWindow> = trials.filter_map(|trial| trial.window.as_ref()).collect();
    let lacks = [
        (
            windows.iter().any(|window| window.whole_cycles == 0),
            "whole checkpoint cycles (checkpoint writes, and full-page images at their usual share)",
        ),
        (windows.iter().any(|window| !window.prefilled), "recycled WAL segments"),
        (windows.iter().any(|window| window.warm_up_cycles == 0), "a warm-up until rates settle"),
    ];
    let lacks: Vec<String> =
        lacks.into_iter().filter(|(lacking, _)| *lacking).map(|(_, what)| what.to_owned()).collect();
    let lacks = if lacks.is_empty() { String::new() } else { format!(": its windows lack {}", list(&lacks)) };
    let replaced: BTreeSet<String> = windows
        .iter()
        .flat_map(|window| &window.replaced)
        .map(|(name, (own, ours))| format!("{name} = {ours} in place of {own}"))
        .collect();
    let replaced = match replaced.is_empty() {
        true => String::new(),
        false => format!(" In turns its servers had {}.", list(&replaced.into_iter().collect::<Vec<_>>())),
    };
    let part = part_of_plan(run, whole).map_or_else(String::new, |part| format!(" It had {part}."));
    format!("This was a quick run{lacks}.{replaced}{part}")
}

/// "13 of the plan's 171 cases, 1 block instead of 3 and loop=2GiB"; `None` if nothing was left out.
fn part_of_plan(run: &RunRecord, whole: &QuickOf) -> Option<String> {
    let cases = run.cases.len();
    let fewer = (cases < whole.cases as usize).then(|| format!("{cases} of the plan's {} cases", whole.cases));
    let blocks = if run.blocks == 1 { "block" } else { "blocks" };
    let shorter = (run.blocks < whole.blocks).then(|| format!("{} {blocks} instead of {}", run.blocks, whole.blocks));
    let set: Vec<String> = whole.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let set = (!set.is_empty()).then(|| set.join(", "));
    let parts: Vec<String> = fewer.into_iter().chain(shorter).chain(set).collect();
    (!parts.is_empty()).then(|| list(&parts))
}
