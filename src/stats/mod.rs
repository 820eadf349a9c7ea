//! Pure statistics on slices. Knows no unit, no record, does no I/O; a random seed is an argument.
//!
//! Which interval is used where, and what was rejected: `docs/adr/0003-intervals.md`; how ranks are decided:
//! `docs/adr/0017-ranks-are-decided-together.md`.

pub(crate) mod autocorrelation;
pub mod decisions;
pub(crate) mod geometric;
pub mod interval;
pub(crate) mod moments;
pub(crate) mod noise;
pub mod ratio;
pub mod search;
pub(crate) mod slices;
pub(crate) mod student;
pub(crate) mod studentized;

#[cfg(test)]
mod rank_errors;
#[cfg(test)]
pub(crate) mod simulation;
