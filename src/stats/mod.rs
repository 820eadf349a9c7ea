//! Pure statistics on slices. Knows no unit, no record, does no I/O; a random seed is an argument.
//!
//! Which interval is used where, and what was rejected: `docs/adr/0003-intervals.md`; how ranks are decided:
//! `docs/adr/0017-ranks-are-decided-together.md`, and where a run may stop early `docs/adr/0022-blocks-may-be-adaptive.md`.

mod anytime;
pub(crate) mod autocorrelation;
pub mod criticals;
pub mod decisions;
pub mod disturbance;
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
