//! The life of a case: requirements, build, load, warm, measure, tear down; one event stream; interrupts.
//!
//! Sees every room that touches the machine, and the writing side of the store. Absent on purpose: formulas, file
//! formats, HTML, printing.
//!
//! A stack that has no room left in `age` or later is a result (`trial::full`): what was counted up to then stands, the
//! trial is not tried again, and steps that need the server are left out. A step after `measure` finds the server
//! running and the stack standing. Verdicts come through a function that `cli` hands in ([`verdicts::Judge`]), since
//! `cut` uses `run`. `analyse::look` says which cases need further blocks, and `stats` when a drive is steady or a
//! trial disturbed: what stops a run is decided by the same code as the ranks of its report; `run` itself computes
//! nothing.

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
