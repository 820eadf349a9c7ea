//! Pure statistics on slices. Knows no unit, no record, does no I/O; a random seed is an argument.
//!
//! Which interval is used where, and what was rejected: `docs/adr/0003-intervals.md`.

pub(crate) mod autocorrelation;
pub(crate) mod geometric;
pub mod interval;
pub(crate) mod moments;
pub mod ratio;
pub(crate) mod slices;
pub(crate) mod student;

#[cfg(test)]
pub(crate) mod simulation;
