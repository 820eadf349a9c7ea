//! Schedules the rows: short slices in turn, in seeded random order, until each row's rate is known or the time is used
//! up.
//!
//! Pure except for [`Bench`]. A neighbour's noise thus hits all rows alike, and a row whose rate is known leaves its
//! time to the others.

use crate::error::Result;
use crate::stats::slices;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// Target number of rounds: an interval from fewer slices is wide.
const ROUNDS: u32 = 20;
/// The remaining time is always split into at least this many rounds: more slices are worth more than longer ones.
const ROUNDS_LEAST: u32 = 4;
/// Slices a row must have before its rate counts as known: fewer can agree by chance, and stopping as soon as they do
/// would make less of the 95 % (simulated in `stats::slices`).
const FEWEST_SLICES: usize = 16;
/// Shortest slice: below this, switching between rows would take most of the time.
const SHORTEST: Duration = Duration::from_millis(5);
/// Longest slice: even a probe of an hour takes turns.
const LONGEST: Duration = Duration::from_millis(250);

/// Runs the slices.
pub trait Bench {
    /// Time since the measurement began.
    fn elapsed(&self) -> Duration;
    /// Runs a row for about `span`, at least one operation; `None` if the row has ended or is not available.
    ///
    /// # Errors
    /// Interrupted, or the place is gone.
    fn slice(&mut self, row: usize, span: Duration) -> Result<Option<(u64, f64)>>;
    /// Idles for a moment, after a round through all rows.
    fn pause(&mut self) {}
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// When to stop, since the start of the measurement.
    pub until: Duration,
    /// Relative half-width of the interval at which a rate is known; 0 to use all the time.
    pub precision: f64,
    /// Seed of the order.
    pub seed: u64,
}

/// Runs rows 0 to `rows` - 1. After each round, `report` gets the number of finished rows and the total.
///
/// # Errors
/// As for [`Bench::slice`].
pub fn run(bench: &mut impl Bench, rows: usize, goal: Goal, mut report: impl FnMut(usize, usize)) -> Result<()> {
    let mut order = ChaCha8Rng::seed_from_u64(goal.seed);
    let mut work: Vec<Vec<(u64, f64)>> = vec![Vec::new(); rows];
    let mut open: Vec<usize> = (0..rows).collect();
    let mut rounds_left = ROUNDS;
    while !open.is_empty() {
        open.shuffle(&mut order);
        let left = goal.until.saturating_sub(bench.elapsed());
        let span = span(left, open.len(), rounds_left);
        rounds_left = rounds_left.saturating_sub(1).max(ROUNDS_LEAST);
        let mut still_open = Vec::with_capacity(open.len());
        for row in open {
            if bench.elapsed() >= goal.until {
                return Ok(());
            }
            let Some(done) = bench.slice(row, span)? else { continue };
            work[row].push(done);
            if !known(&work[row], goal.precision) {
                still_open.push(row);
            }
        }
        open = still_open;
        bench.pause();
        report(rows - open.len(), rows);
    }
    Ok(())
}

/// Length of a slice such that the remaining rounds fit into the remaining time.
fn span(left: Duration, rows: usize, rounds: u32) -> Duration {
    let slices = u32::try_from(rows).unwrap_or(u32::MAX).saturating_mul(rounds).max(1);
    (left / slices).clamp(SHORTEST, LONGEST)
}

fn known(work: &[(u64, f64)], precision: f64) -> bool {
    precision > 0.0
        && work.len() >= FEWEST_SLICES
        && slices::rate(work).and_then(|rate| rate.relative_half_width()).is_some_and(|half| half <= precision)
}

#[cfg(test)]
mod tests;
