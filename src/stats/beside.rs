//! What the machine did beside a turn: how fast a probe found the disk, and what CPU time other programs took. Which cases
//! have their turns beside a neighbour's burst is chance, and on a shared machine most of what equal cases differ by.
//!
//! Both are measured between turns, when no case is at work. Within a turn a case that waits leaves others more CPU, and
//! would be excused for it.

use super::carry_over::{OWN, Turn, groups, less_means, product};
use std::collections::BTreeMap;

/// Number of things that are measured beside a turn.
const THINGS: usize = 2;

/// Change of the logarithm of a turn's rate for each unit: of the logarithm of the disk's rate, and of the share of all CPUs
/// that others take.
pub type Slopes = [f64; THINGS];

/// Limits of each, so that chance explains nothing where hardly anything changed: a turn gains from a faster disk at most
/// what the disk gains, and loses to others at most what a load loses that needs all CPUs while they take half of them
/// (the derivative of ln(1 - x) at 1/2).
const LIMITS: [(f64, f64); THINGS] = [(0.0, 1.0), (-2.0, 0.0)];

/// Passes over the slopes, each with the others held: two converge quickly.
const PASSES: usize = 20;

/// Turns without the effects of what was measured beside them.
pub struct TakenOut {
    pub turns: Vec<Turn>,
    /// Mean effect on the turns of each case in each block, as the logarithm of a ratio.
    pub borne: BTreeMap<(usize, u32), f64>,
    pub slopes: Slopes,
}

/// Takes the effects out, less the mean effect. Least squares within [`LIMITS`], together with what each case does in each
/// block and what each round has in common. Turns are in order of time.
pub fn taken_out(turns: &[Turn]) -> TakenOut {
    let things = [0, 1].map(|thing| at_both_ends(turns, thing));
    let logs = less_means(turns, turns.iter().map(|turn| turn.log).collect());
    let columns = things.each_ref().map(|thing| less_means(turns, thing.clone()));
    let mut slopes = Slopes::default();
    for thing in (0..PASSES * THINGS).map(|pass| pass % THINGS) {
        let squares = product(&columns[thing], &columns[thing]);
        let shared = slopes[1 - thing] * product(&columns[thing], &columns[1 - thing]);
        let (low, high) = LIMITS[thing];
        let moment = product(&columns[thing], &logs) - shared;
        slopes[thing] = if squares > 0.0 { (moment / squares).clamp(low, high) } else { 0.0 };
    }
    let effects = (0..turns.len()).map(|turn| slopes[0] * things[0][turn] + slopes[1] * things[1][turn]);
    let effects: Vec<f64> = effects.collect();
    let mean = |of: &[usize]| of.iter().map(|at| effects[*at]).sum::<f64>() / of.len() as f64;
    let borne = groups(turns, OWN).into_iter().map(|((case, block, _), of)| ((case, block), mean(&of))).collect();
    let turns = turns.iter().zip(&effects).map(|(turn, effect)| Turn { log: turn.log - effect, ..*turn });
    TakenOut { turns: turns.collect(), borne, slopes }
}

/// Mean of what was measured before and after each turn, less that of all; 0 where neither is known, or the stack has no
/// disk and it is the disk's.
fn at_both_ends(turns: &[Turn], thing: usize) -> Vec<f64> {
    let before = |turn: &Turn| turn.beside.map(|beside| beside[thing]);
    let of_turn = |(at, turn): (usize, &Turn)| {
        let next = turns.get(at + 1).filter(|next| next.block == turn.block).and_then(before);
        let own = before(turn).or(next.filter(|_| thing == 1))?;
        Some((own + next.unwrap_or(own)) / 2.0)
    };
    let known: Vec<Option<f64>> = turns.iter().enumerate().map(of_turn).collect();
    let count = known.iter().flatten().count().max(1) as f64;
    let mean = known.iter().flatten().sum::<f64>() / count;
    known.into_iter().map(|value| value.map_or(0.0, |value| value - mean)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two blocks of twelve rounds of four equal cases, beside a disk and a neighbour that change every few turns.
    fn turns(effect: [f64; THINGS]) -> Vec<Turn> {
        let mut turns = Vec::new();
        for at in 0..96_u32 {
            let (block, round, place) = (at / 48, at / 4, at % 4);
            let beside = [f64::from(at / 5 % 3) - 1.0, f64::from(at / 7 % 2) * 0.4];
            let case = (place + round) as usize % 4;
            let log = beside[0] * effect[0] + beside[1] * effect[1] + f64::from(round) / 10.0;
            turns.push(Turn { case, block, round, after: None, log, beside: Some(beside) });
        }
        turns
    }

    /// Widest difference between cases, with what their turns bore and without.
    fn widest(turns: &[Turn], borne: &BTreeMap<(usize, u32), f64>) -> (f64, f64) {
        let of = |case: usize, less: bool| {
            let own = turns.iter().filter(|turn| turn.case == case);
            own.map(|turn| turn.log - if less { borne[&(case, turn.block)] } else { 0.0 }).sum::<f64>() / 24.0
        };
        let spread = |less: bool| {
            let means: Vec<f64> = (0..4).map(|case| of(case, less)).collect();
            means.iter().fold(f64::MIN, |a, b| a.max(*b)) - means.iter().fold(f64::MAX, |a, b| a.min(*b))
        };
        (spread(false), spread(true))
    }

    #[test]
    fn equal_cases_are_more_equal_without_their_neighbours() {
        let turns = turns([0.3, -1.1]);
        let found = taken_out(&turns);
        assert!((0.1..0.6).contains(&found.slopes[0]) && (-1.6..-0.5).contains(&found.slopes[1]), "{:?}", found.slopes);
        let (with, without) = widest(&turns, &found.borne);
        assert!(without < with / 2.0, "{with} {without}");
    }

    #[test]
    fn what_cannot_be_an_effect_is_not_taken_out() {
        assert_eq!(taken_out(&turns([-0.5, 0.9])).slopes, [0.0, 0.0]);
        assert_eq!(taken_out(&turns([3.0, -9.0])).slopes, [1.0, -2.0]);
        let unknown: Vec<Turn> = turns([0.3, -1.1]).into_iter().map(|turn| Turn { beside: None, ..turn }).collect();
        assert_eq!(taken_out(&unknown).slopes, [0.0, 0.0]);
        assert!(taken_out(&[]).borne.is_empty());
    }

    #[test]
    fn a_stack_without_a_disk_is_no_faster_for_a_faster_one() {
        let mut turns = turns([0.3, 0.0]);
        for turn in turns.iter_mut().filter(|turn| turn.case == 2) {
            (turn.beside, turn.log) = (None, f64::from(turn.round) / 10.0);
        }
        let found = taken_out(&turns);
        let steady = |block: u32| found.borne[&(2, block)];
        assert!(found.slopes[0] > 0.1 && (steady(0) - steady(1)).abs() < 0.02, "{:?}", found.borne);
    }
}
