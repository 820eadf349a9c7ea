//! Pure statistics on slices: no units, no records, no I/O; a random seed is an argument.
//!
//! Choice of intervals and rejected alternatives: `docs/adr/0003-intervals.md`; ranks:
//! `docs/adr/0017-ranks-are-decided-together.md`; early stopping: `docs/adr/0022-blocks-may-be-adaptive.md`; effects of
//! options: `docs/adr/0044-effects-of-options.md`.

// Here as in the program, whose room this is, the way to a module begins with `crate::stats`.
extern crate self as stats;

mod anytime;
pub mod autocorrelation;
pub mod beside;
pub mod carry_over;
pub mod criticals;
pub mod decisions;
pub mod disturbance;
pub mod effects;
pub mod geometric;
pub mod interval;
mod line;
pub mod margin;
pub mod moments;
pub mod noise;
mod nominal;
pub mod outliers;
pub mod ratio;
pub mod search;
pub mod sequence;
pub mod slices;
pub mod steady_state;
pub mod student;
pub mod studentized;
pub mod trend;

#[cfg(test)]
mod rank_error_tests;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
#[cfg(test)]
mod turn_error_tests;
