//! The guest: commands in it, the ways in which it ends, and the tests of layers that the host's kernel lacks.
//!
//! They need a guest that is built (`pgstrata guest build`), and say so where there is none. With PGSTRATA_TEST_GUEST=1 they
//! build it, in both suites (`make guest-full`).
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

mod commands;
mod deaths;
mod ground;
mod layers;
mod plans;
mod refusals;
