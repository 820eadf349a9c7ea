//! The life of a case: requirements, build, load, warm, measure, tear down; one event stream; interrupts.
//!
//! Sees every room that touches the machine, and the writing side of the store. Absent on purpose: formulas, file
//! formats, HTML, printing.

mod age_cost;
pub(crate) mod case;
pub(crate) mod check;
pub(crate) mod clean;
mod cpu_taken;
pub(crate) mod crashed;
pub(crate) mod died;
mod disturbance;
pub(crate) mod doctor;
pub(crate) mod drives;
pub(crate) mod events;
mod fail_fast;
pub(crate) mod forecast;
mod guests;
pub(crate) mod io_uring;
mod looks;
pub(crate) mod measure;
pub mod opening;
mod repeats;
pub(crate) mod session;
mod share;
mod sitting;
pub(crate) mod template;
pub(crate) mod trial;
pub(crate) mod undo;
pub(crate) mod verdicts;
mod warnings;
mod window;
