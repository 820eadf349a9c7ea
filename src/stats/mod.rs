//! Pure statistics on slices. Knows no unit, no record, does no I/O; a random seed is an argument.
//!
//! Which interval is used where, and what was rejected: `docs/adr/0003-intervals.md`.

pub mod autocorrelation;
pub mod interval;
pub mod moments;
pub mod ratio;
pub mod slices;
pub mod student;

#[cfg(test)]
pub mod simulation;
