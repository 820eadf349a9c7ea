//! Every test of the program from outside, in one binary: it is linked once. A new file is a module here, or in the folder of its concern.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says so where it is skipped"
)]

mod answers;
mod cli_plan;
mod compare;
mod completions;
mod depth;
mod guest;
mod house;
mod import;
mod probe;
mod program;
mod recipes;
mod report;
mod screens;
mod shelf;
