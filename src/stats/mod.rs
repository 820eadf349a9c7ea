//! Pure statistics on slices: no units, no records, no I/O; a random seed is an argument.
//!
//! Choice of intervals and rejected alternatives: `docs/adr/0003-intervals.md`; ranks:
//! `docs/adr/0017-ranks-are-decided-together.md`; early stopping: `docs/adr/0022-blocks-may-be-adaptive.md`; effects of
//! options: `docs/adr/0044-effects-of-options.md`.

mod anytime;
pub(crate) mod autocorrelation;
pub mod criticals;
pub mod decisions;
pub mod disturbance;
pub mod effects;
pub(crate) mod geometric;
pub mod interval;
mod line;
pub mod margin;
pub(crate) mod moments;
pub(crate) mod noise;
mod nominal;
pub mod outliers;
pub mod ratio;
pub mod search;
pub mod sequence;
pub(crate) mod slices;
pub mod steady_state;
pub(crate) mod student;
pub(crate) mod studentized;
pub mod trend;

#[cfg(test)]
mod rank_errors;
#[cfg(test)]
pub(crate) mod simulation;
