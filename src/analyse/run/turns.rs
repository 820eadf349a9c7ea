//! Turns of the cases that stood side by side: rounds made again, idle work, others' CPU time beside them, and what a
//! case does to the turn after its own.

use crate::analyse::case::sums::CaseSums;
use crate::analyse::case::turns::TurnSums;
use crate::analyse::findings::estimate::Estimate;
use crate::analyse::findings::remark::{Remark, Weight};
use crate::analyse::findings::{CaseTurns, TurnsFinding};
use crate::stats::beside;
use crate::stats::carry_over::{Turn, after_each, borne};
use std::collections::BTreeSet;

/// Share of its writes that a stack may make between its turns without a remark.
const IDLE_NAMED: f64 = 0.05;

/// Difference that taking something out of ratios makes, from which on it is remarked.
const TAKEN_NAMED: f64 = 0.01;

/// `None` if no case was measured in turns; otherwise each case learns what its turns bore from the cases before. Of
/// adaptive blocks the first `at_least` decide how that is taken out.
pub fn found(cases: &mut [CaseSums], at_least: Option<u32>) -> Option<TurnsFinding> {
    let until = at_least.unwrap_or(u32::MAX);
    let mut turned: Vec<&mut CaseSums> = cases.iter_mut().filter(|case| !case.turns.turns.is_empty()).collect();
    let place = |id: &str| turned.iter().position(|case| case.spec.id == id);
    let turns =
        turned.iter().enumerate().flat_map(|(case, sums)| sums.turns.turns.iter().map(move |turn| (case, turn)));
    let mut turns: Vec<_> = turns.collect();
    turns.sort_by_key(|(_, turn)| (turn.block, turn.began_us));
    let turns = turns.into_iter().map(|(case, turn)| {
        let after = turn.after.as_deref().and_then(place);
        Turn { case, block: turn.block, round: turn.round, after, log: turn.log, others_share: turn.others_share }
    });
    let turns: Vec<Turn> = turns.collect();
    let rounds: BTreeSet<(u32, u32)> = turns.iter().map(|turn| (turn.block, turn.round)).collect();
    let all = |of: fn(&TurnSums) -> &Vec<(u32, u32)>| {
        turned.iter().flat_map(|case| of(&case.turns)).collect::<BTreeSet<_>>().len() as u64
    };
    let (made_again, off) = (all(|turns| &turns.made_again), all(|turns| &turns.off));
    let apart: Vec<u32> = (0..turned.len()).map(|case| apart(&turned, case)).collect();
    let mut found = vec![None; turned.len()];
    let (mut is_taken_out, mut others_slope, mut others_slope_half_width) = (false, 0.0, None);
    // A turn follows one of its own guest.
    let guests: BTreeSet<Option<String>> = turned.iter().map(|case| case.spec.guest.clone()).collect();
    for guest in guests {
        let inside: Vec<usize> = (0..turned.len()).filter(|case| turned[*case].spec.guest == guest).collect();
        let place = |case: usize| inside.iter().position(|known| *known == case);
        let own = turns
            .iter()
            .filter_map(|turn| Some(Turn { case: place(turn.case)?, after: turn.after.and_then(place), ..*turn }));
        let taken_out = beside::taken_out(&own.collect::<Vec<Turn>>(), until);
        if taken_out.slope < others_slope {
            (others_slope, others_slope_half_width) = (taken_out.slope, taken_out.half_width);
        }
        let own = &taken_out.turns;
        inside.iter().zip(after_each(own, inside.len())).for_each(|(case, after)| found[*case] = after);
        let carried = borne(own, inside.len(), until);
        is_taken_out |= carried.values().any(|log| *log != 0.0);
        for ((case, block), log) in taken_out.borne.into_iter().chain(carried) {
            *turned[inside[case]].turns.borne.entry(block).or_default() += log;
        }
    }
    let cases = turned.iter().zip(found).zip(apart).map(|((case, after), apart)| CaseTurns {
        case: case.spec.id.clone(),
        turns: case.turns.turns.len() as u64,
        idle_share: case.turns.idle_share(),
        after: after.map(|after| {
            let ends = [after.log - after.half_width, after.log + after.half_width].map(f64::exp);
            Estimate::of(after.log.exp(), Some(ends.into()), case.trials.len())
        }),
        is_carried_over: after.is_some_and(|after| after.is_seen()),
        borne: case.turns.borne.clone(),
        apart,
    });
    let cases: Vec<CaseTurns> = cases.collect();
    let rounds = rounds.len() as u64;
    let found = TurnsFinding { rounds, made_again, off, is_taken_out, others_slope, others_slope_half_width, cases };
    (!found.cases.is_empty()).then_some(found)
}

/// Blocks in which no turn of another case of its guest began while this one had its own.
fn apart(turned: &[&mut CaseSums], case: usize) -> u32 {
    let beside =
        |other: &CaseSums| other.spec.guest == turned[case].spec.guest && other.spec.id != turned[case].spec.id;
    let others: Vec<_> = turned.iter().filter(|other| beside(other)).map(|other| other.turns.spans()).collect();
    let lies_apart = |(block, (first, last)): &(u32, (u64, u64))| {
        let mut beside = others.iter().filter_map(|spans| spans.get(block)).peekable();
        // A single turn of each lies between no two of another.
        first < last && beside.peek().is_some() && beside.all(|(begun, ended)| ended < first || last < begun)
    };
    turned[case].turns.spans().into_iter().filter(lies_apart).count() as u32
}

/// Remarks on one case.
pub fn of_case(found: Option<&TurnsFinding>, case: &str) -> Vec<Remark> {
    let own = found.and_then(|found| found.cases.iter().find(|own| own.case == case));
    let idle = own.and_then(|own| own.idle_share).filter(|share| *share > IDLE_NAMED);
    let words = "idle, the stack wrote {} of what it wrote in its turns";
    let idle = Remark::of_share(Weight::Disturbed, words, idle);
    let without = match found.is_some_and(|found| found.is_taken_out) {
        true => "ratios are without that",
        false => "ratios still have that",
    };
    let carried = own.filter(|own| own.is_carried_over).and_then(|own| own.after).map(|after| {
        let words = format!("turns after those of one case differ: {without}");
        let times = format!("{:.2} times the mean rate", after.value);
        Remark::plain(Weight::Disturbed, words).alone(format!("turns after its own: {times}, {without}"))
    });
    let words = "in {} blocks its turns lay apart from those it is compared with";
    let apart = own.map(|own| (own.apart.into(), own.borne.len() as u64));
    let apart = apart.and_then(|(apart, blocks)| Remark::counted(Weight::Incomparable, words, apart, blocks));
    idle.into_iter().chain(carried).chain(apart).collect()
}

/// Remarks on the run: rounds on a disturbed disk, and what ratios are without.
pub fn of_run(found: Option<&TurnsFinding>) -> Vec<Remark> {
    let Some(found) = found else { return Vec::new() };
    let again = "{} rounds were made again: disk off its usual rate by over 3×";
    let again = Remark::counted(Weight::Disturbed, again, found.made_again, found.made_again + found.rounds);
    let off = "{} rounds count with the disk off by over 3×: at most a fifth repeat";
    let off = Remark::counted(Weight::Disturbed, off, found.off, found.rounds);
    let means = found.cases.iter().filter(|case| !case.borne.is_empty());
    let means = means.map(|case| case.borne.values().sum::<f64>() / case.borne.len() as f64);
    let (least, most) = means.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), mean| (a.min(mean), b.max(mean)));
    let taken = (most - least > TAKEN_NAMED).then(|| 1.0 - (least - most).exp());
    let words = "other programs and turns before cost a case up to {} more: not in ratios";
    again.into_iter().chain(off).chain(Remark::of_share(Weight::Disturbed, words, taken)).collect()
}
