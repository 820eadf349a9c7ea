//! A PostgreSQL on a folder: find one, make a cluster, set it, start, wait until ready, stop, kill.
//!
//! Absent on purpose: which filesystem lies below, what is run on it. Servers listen on a Unix socket in a private
//! folder only, and never run as root.

pub mod check;
pub(crate) mod client;
pub(crate) mod conf;
pub(crate) mod copy;
pub mod install;
pub(crate) mod log;
pub mod server;
pub(crate) mod setting;
pub mod spec;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod undo;
