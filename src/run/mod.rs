//! The life of a case: requirements, build, load, warm, measure, tear down; one event stream; interrupts.
//!
//! Uses every room that touches the machine, and the writing side of the store. Not here: formulas, file formats, HTML,
//! printing.
//!
//! A stack that fills up in `age` or later is a result (`trial::full`): the counts so far stand, the trial is not
//! retried, and steps that need the server are left out. Steps after `measure` find the server running and the stack in
//! place. Verdicts come through a function that `cli` passes in ([`session::Judge`]), since `cut` uses `run`.
//! `analyse::look` decides which cases need more blocks, and `stats` when a drive is steady or a trial disturbed: the
//! same code decides when a run stops and how its report ranks. `run` itself computes nothing.

mod age_cost;
pub(crate) mod by_hand;
pub(crate) mod case;
pub(crate) mod check;
pub(crate) mod clean;
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
pub(crate) mod rehearsal;
mod repeats;
pub(crate) mod session;
mod share;
pub(crate) mod template;
mod together;
pub(crate) mod trial;
mod trial_loop;
mod turns;
pub(crate) mod undo;
pub(crate) mod verdicts;
mod warnings;
mod window;
