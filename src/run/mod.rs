//! The life of a case: requirements, build, load, warm, measure, tear down; one event stream; interrupts.
//!
//! Sees every room that touches the machine, and the writing side of the store. Absent on purpose: formulas, file
//! formats, HTML, printing.

pub mod clean;
pub mod doctor;
pub mod events;
pub mod forecast;
pub mod measure;
pub mod session;
pub mod template;
pub mod trial;
pub mod undo;
