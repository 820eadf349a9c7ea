//! The guest: commands in it, the ways in which it ends, and the tests of layers that the host's kernel lacks.
//!
//! They need a guest that is built (`pgstrata guest build`), and say so where there is none. They build those of the suites that
//! PGSTRATA_TEST_GUEST names; `make test-full` names them all.

mod commands;
mod crashes;
mod deaths;
mod disks;
mod ground;
mod layers;
mod plans;
mod power_cuts;
mod refusals;
