//! Turns of the cases that stood side by side: rounds made again, idle work, others' CPU time beside them, and what a
//! case does to the turn after its own.

use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::estimate::Estimate;
use crate::analyse::findings::remark::{Number, Remark, Weight};
use crate::analyse::findings::{CaseTurns, TurnsFinding};
use crate::stats::beside;
use crate::stats::carry_over::{Turn, after_each, borne};
use std::collections::BTreeSet;

/// Share of its writes that a stack may make between its turns without a remark.
const IDLE_NAMED: f64 = 0.05;

/// `None` if no case was measured in turns; otherwise each case learns what its turns bore from the cases before.
pub fn found(cases: &mut [CaseSums]) -> Option<TurnsFinding> {
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
    let made_again: BTreeSet<(u32, u32)> = turned.iter().flat_map(|case| &case.turns.made_again).copied().collect();
    let mut found = vec![None; turned.len()];
    let (mut is_taken_out, mut others_slope) = (false, 0.0);
    // A turn follows one of its own guest.
    let guests: BTreeSet<Option<String>> = turned.iter().map(|case| case.spec.guest.clone()).collect();
    for guest in guests {
        let inside: Vec<usize> = (0..turned.len()).filter(|case| turned[*case].spec.guest == guest).collect();
        let place = |case: usize| inside.iter().position(|known| *known == case);
        let own = turns
            .iter()
            .filter_map(|turn| Some(Turn { case: place(turn.case)?, after: turn.after.and_then(place), ..*turn }));
        let taken_out = beside::taken_out(&own.collect::<Vec<Turn>>());
        others_slope = f64::min(others_slope, taken_out.slope);
        let own = &taken_out.turns;
        inside.iter().zip(after_each(own, inside.len())).for_each(|(case, after)| found[*case] = after);
        let carried = borne(own, inside.len());
        is_taken_out |= carried.values().any(|log| *log != 0.0);
        for ((case, block), log) in taken_out.borne.into_iter().chain(carried) {
            *turned[inside[case]].turns.borne.entry(block).or_default() += log;
        }
    }
    let cases = turned.iter().zip(found).map(|(case, after)| CaseTurns {
        case: case.spec.id.clone(),
        turns: case.turns.turns.len() as u64,
        idle_share: case.turns.idle_share(),
        after: after.map(|after| Estimate {
            value: after.log.exp(),
            low: Some((after.log - after.half_width).exp()),
            high: Some((after.log + after.half_width).exp()),
            range: None,
            trials: u32::try_from(case.trials.len()).unwrap_or(u32::MAX),
        }),
        is_carried_over: after.is_some_and(|after| after.is_seen()),
        borne: case.turns.borne.clone(),
    });
    let cases: Vec<CaseTurns> = cases.collect();
    let (rounds, made_again) = (rounds.len() as u64, made_again.len() as u64);
    let found = TurnsFinding { rounds, made_again, is_taken_out, others_slope, cases };
    (!found.cases.is_empty()).then_some(found)
}

/// Remarks on one case.
pub fn of_case(found: Option<&TurnsFinding>, case: &str) -> Vec<Remark> {
    let own = found.and_then(|found| found.cases.iter().find(|own| own.case == case));
    let idle = own.and_then(|own| own.idle_share).filter(|share| *share > IDLE_NAMED).map(|share| {
        let words = "while other cases had their turns, the stack wrote {} of what it wrote in its own";
        Remark::with(Weight::Disturbed, words, Number::Share(share))
    });
    let without = match found.is_some_and(|found| found.is_taken_out) {
        true => "ratios of rates are without that",
        false => "too few turns in a block to take that out of ratios",
    };
    let carried = own.filter(|own| own.is_carried_over).and_then(|own| own.after).map(|after| {
        let words = format!("turns that follow those of one case differ from the rest: {without}");
        let times = format!("{:.2} times the mean rate", after.value);
        Remark::plain(Weight::Disturbed, words).alone(format!("turns that follow its own run at {times}: {without}"))
    });
    idle.into_iter().chain(carried).collect()
}

/// Remark on the run: rounds made again.
pub fn of_run(found: Option<&TurnsFinding>) -> Option<Remark> {
    let found = found.filter(|found| found.made_again > 0)?;
    let words = "{} rounds were made again, since the disk was off its usual rate by more than a factor of three";
    Some(Remark::with(Weight::Disturbed, words, Number::Of(found.made_again, found.made_again + found.rounds)))
}
