//! A PostgreSQL in a folder: find an installation, create a cluster, configure, start, wait until ready, stop, kill.
//!
//! Not here: the filesystem below, and the workload. Servers listen only on a Unix socket in a private folder, and
//! never run as root.

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
