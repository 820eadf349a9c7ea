//! Raw counters with time stamps, once a second, gaps marked; and what the backends wait for, ten times a second.
//!
//! A sampler is one file and one line in [`ALL`]. It reads raw counters and stores them raw: rates, percentiles and
//! cases are for `analyse`. Columns are the same for every trial, whatever the stack, so that all trials of a run read
//! as one table; what is not there is absent.

use crate::error::Result;
use crate::host::Host;
use crate::record::facts::DeviceFacts;
use crate::record::seconds::{Column, Value};
use std::path::PathBuf;

/// Every sampler, in the order of the columns.
pub const ALL: &[&dyn Sampler] = &[];

/// What there is to sample in one trial.
#[derive(Debug, Clone, Default)]
pub struct Target {
    /// Devices below the data, depth 0 the one that the filesystem stands on.
    pub data_devices: Vec<DeviceFacts>,
    /// Devices below pg_wal, where it lies on another stack.
    pub wal_devices: Vec<DeviceFacts>,
    /// How to reach the server; `None` where the workload runs without one.
    pub server: Option<ServerAddress>,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// The socket file: `<private folder>/.s.PGSQL.5432`.
    pub socket: PathBuf,
    /// Database to connect to for statistics.
    pub database: String,
    /// Role.
    pub user: String,
}

/// One source of counters.
pub trait Sampler: Sync {
    /// Its name: `diskstats`.
    fn name(&self) -> &'static str;
    /// Its columns, the same for every target.
    fn columns(&self) -> Vec<Column>;
    /// Gets ready to read. `Ok(None)` with nothing to say is not allowed: a source that is absent says why.
    ///
    /// # Errors
    /// Why there is nothing to read (no such file in this kernel, server unreachable): becomes a gap with this reason.
    fn open(&self, host: &Host, target: &Target) -> Result<Box<dyn Reading>>;
}

/// A source that is open.
pub trait Reading: Send {
    /// Reads all counters now, one value (or none) for each of the sampler's columns, in their order.
    ///
    /// # Errors
    /// Why this second has none: becomes a gap.
    fn sample(&mut self) -> Result<Vec<Option<Value>>>;
}
