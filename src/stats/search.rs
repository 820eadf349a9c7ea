//! Search for the highest rate that a system sustains: the next rate to try, and the result of all tries.
//!
//! Rates stand on a ladder of equal ratios ([`RUNG`]); a try passes or fails. Near the capacity the outcome is a matter
//! of chance, so no single try proves much: plain bisection answers too high in a third of all searches. Simulations
//! and reasons: `docs/adr/0023-capacity-at-a-latency-limit.md`.

use super::autocorrelation::Within;

/// Ratio of neighbouring rates.
pub const RUNG: f64 = 1.05;

/// Rungs of the first stride (22 %), and of a bracket that is narrow enough.
const STRIDE: i32 = 4;

/// Longest stride down (a factor of 2.2), and the lowest rung (1/22 of the first rate).
const LONGEST_STRIDE: i32 = 16;
const LOWEST: i32 = -64;

/// Most tries to bracket the capacity between a rate that passed and one that failed.
const MOST_BRACKETING: usize = 6;

/// Tries up and down around the capacity before a rate is confirmed.
const STAIRS: usize = 4;

/// Consecutive tries that a rate must pass to hold.
pub const IN_A_ROW: usize = 3;

/// Fewest tries with which both figures are usually found.
pub const FEWEST: usize = MOST_BRACKETING + STAIRS + IN_A_ROW;

/// Distance between candidate capacities, rungs.
const GRID: f64 = 0.5;

/// Rungs by which candidate capacities extend beyond the tried rates.
const BEYOND: i32 = 8;

/// Candidate noises of a try: standard deviation of the logarithm of its own capacity.
const NOISES: [f64; 5] = [0.02, 0.038, 0.071, 0.133, 0.25];

/// Stretch of its argument that brings the logistic curve closest to the normal one (Camilli, J. Educ. Behav. Stat. 19
/// (1994) 293).
const LOGISTIC: f64 = 1.702;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Try {
    /// Its rate, in rungs above the rate at the start of the search.
    pub rung: i32,
    pub passed: bool,
}

/// Rate of a rung over the rate of rung 0.
pub fn ratio(rung: f64) -> f64 {
    RUNG.powf(rung)
}

/// The next rung to try.
pub fn next(tried: &[Try]) -> i32 {
    let mut search = Search::default();
    for one in tried {
        search.take(*one);
    }
    let rung = match search.aim {
        Aim::Rung(rung) => rung,
        Aim::Capacity => nearest(tried).unwrap_or(0),
        // Halfway from the capacity to the lower end of its interval.
        Aim::Below => about(tried).map_or(0, |about| f64::midpoint(about.rung, about.low).floor() as i32),
    };
    rung.max(LOWEST)
}

/// The highest rung that passed [`IN_A_ROW`] consecutive tries.
pub fn holds(tried: &[Try]) -> Option<i32> {
    let row = tried.windows(IN_A_ROW).filter(|row| row.iter().all(|one| one.passed && one.rung == row[0].rung));
    row.map(|row| row[0].rung).max()
}

/// Rung at which half of the tries pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct About {
    /// In rungs above the rate at the start of the search.
    pub rung: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    pub high: f64,
}

impl About {
    /// Error of the capacity, in the unit of `capacity`.
    pub fn within(&self, capacity: f64) -> Within {
        const ERRORS: f64 = 1.96;
        // A normal interval on the logarithm, hence practically infinite degrees of freedom.
        let standard_error = capacity * (self.high - self.low) / 2.0 / ERRORS * RUNG.ln();
        Within { standard_error, degrees: 1e6 }
    }
}

/// Capacity according to all tries; `None` unless one passed and one failed.
///
/// Formula: the mean of the posterior with flat priors on the logarithms of capacity and noise, and its central 95 %
/// (King-Smith et al., Vision Research 34 (1994) 885, who also place the next try there).
pub fn about(tried: &[Try]) -> Option<About> {
    if tried.iter().all(|one| one.passed) || tried.iter().all(|one| !one.passed) {
        return None;
    }
    let least = tried.iter().map(|one| one.rung).min()? - BEYOND;
    let most = tried.iter().map(|one| one.rung).max()? + BEYOND;
    let points = (f64::from(most - least) / GRID) as usize + 1;
    let rungs = (0..points).map(|point| f64::from(least) + GRID * point as f64);
    let weighed: Vec<(f64, f64)> =
        rungs.map(|rung| (rung, NOISES.iter().map(|noise| likelihood(tried, rung, *noise)).sum())).collect();
    let all: f64 = weighed.iter().map(|(_, weight)| weight).sum();
    let mean = weighed.iter().map(|(rung, weight)| rung * weight).sum::<f64>() / all;
    let [low, high] = [0.025, 0.975].map(|share| {
        let mut sum = 0.0;
        for (rung, weight) in &weighed {
            sum += weight / all;
            if sum >= share {
                return rung + GRID * (0.5 - (sum - share) * all / weight);
            }
        }
        f64::from(most)
    });
    Some(About { rung: mean, low, high })
}

/// Likelihood of the outcomes, given the capacity and the noise.
fn likelihood(tried: &[Try], capacity: f64, noise: f64) -> f64 {
    let each = tried.iter().map(|one| {
        let above = (capacity - f64::from(one.rung)) * RUNG.ln() / noise;
        let passes = 1.0 / (1.0 + (-LOGISTIC * above).exp());
        let found = if one.passed { passes } else { 1.0 - passes };
        // A try may fail for a reason unrelated to its rate.
        found.max(1e-12)
    });
    each.product()
}

#[derive(Debug, Clone, Copy, Default)]
enum SearchPhase {
    #[default]
    Bracket,
    Stairs,
    Confirm,
    /// A rate holds: remaining tries refine the capacity.
    Further,
}

/// Target of the next try.
#[derive(Debug, Clone, Copy)]
enum Aim {
    Rung(i32),
    /// The capacity according to all tries.
    Capacity,
    /// A rate at which three consecutive tries should pass.
    Below,
}

impl Default for Aim {
    fn default() -> Aim {
        Aim::Rung(0)
    }
}

/// State of a search, replayed from its tries.
#[derive(Debug, Default)]
struct Search {
    aim: Aim,
    phase: SearchPhase,
    tries: usize,
    low: Option<i32>,
    high: Option<i32>,
    /// Strides down so far; at first each is twice the one before, because a tight limit may lie far below the rate
    /// without one.
    strides: u32,
    stairs: usize,
    in_a_row: usize,
}

impl Search {
    fn take(&mut self, one: Try) {
        self.tries += 1;
        match self.phase {
            SearchPhase::Bracket => self.bracket(one),
            SearchPhase::Stairs => self.stair(one),
            SearchPhase::Confirm => self.confirm(one),
            SearchPhase::Further => self.aim = Aim::Capacity,
        }
    }

    fn bracket(&mut self, one: Try) {
        if one.passed {
            self.low = Some(self.low.map_or(one.rung, |low| low.max(one.rung)));
        } else {
            self.high = Some(self.high.map_or(one.rung, |high| high.min(one.rung)));
        }
        self.aim = Aim::Rung(match (self.low, self.high) {
            (Some(low), Some(high)) => i32::midpoint(low, high),
            (Some(low), None) => low + STRIDE,
            (None, high) => {
                let stride = (STRIDE << self.strides.min(8)).min(LONGEST_STRIDE);
                self.strides += 1;
                high.unwrap_or(0) - stride
            }
        });
        let bracket = self.low.zip(self.high);
        if bracket.is_some_and(|(low, high)| high - low <= STRIDE || self.tries >= MOST_BRACKETING) {
            self.phase = SearchPhase::Stairs;
        }
    }

    fn stair(&mut self, one: Try) {
        self.aim = Aim::Rung(one.rung + if one.passed { 1 } else { -1 });
        self.stairs += 1;
        if self.stairs >= STAIRS {
            (self.aim, self.phase) = (Aim::Below, SearchPhase::Confirm);
        }
    }

    fn confirm(&mut self, one: Try) {
        if !one.passed {
            self.in_a_row = 0;
            self.aim = Aim::Rung(one.rung - 2);
            return;
        }
        self.in_a_row += 1;
        self.aim = Aim::Rung(one.rung);
        if self.in_a_row >= IN_A_ROW {
            (self.aim, self.phase) = (Aim::Capacity, SearchPhase::Further);
        }
    }
}

/// The rung nearest to the estimated capacity; the next one if that has just passed twice, because a third pass by
/// chance would make it hold.
fn nearest(tried: &[Try]) -> Option<i32> {
    let rung = about(tried)?.rung.round() as i32;
    let again = tried.iter().rev().take(IN_A_ROW - 1).all(|one| one.passed && one.rung == rung);
    Some(if again { rung + 1 } else { rung })
}

#[cfg(test)]
mod tests;
