//! Raw counters with timestamps, once a second, gaps marked; and the wait events of backends, ten times a second.
//!
//! A sampler is one file and one line in [`ALL`]. It stores raw counters: rates, percentiles and cases are for
//! `analyse`. Columns have the same name and meaning in every trial; those of devices are named after the nodes of the
//! stack. Missing readings are absent.
//!
//! Cost, measured with 300 processes and 16 clients on 2 virtual CPUs (release build, PostgreSQL 15): 1.8 ms of CPU for
//! a row of all sources, 0.7 ms per second for the waits, together 0.25 % of a core, excluding the server's own work.
//!
//! # Add a sampler
//!
//! Define its columns in `record::columns`, with name, unit, kind and meaning; then add its file here and its `mod` and
//! `ALL` lines; the file pairs each column with the source of its value. Analysis looks columns up in `Seconds` by the
//! same definition and lists them in `analyse::trial::reads`; a column that it does not read is listed in
//! `KEPT_FOR_READERS` of `tests/house/columns.rs`, with the reason why people want it. For SQL it uses the cluster's
//! client, and nothing else of the cluster room.

pub(crate) mod cpu;
pub(crate) mod diskstats;
#[cfg(test)]
mod live_tests;
mod lock_holders;
pub(crate) mod memory;
pub(crate) mod postgres;
pub(crate) mod pressure;
pub(crate) mod processes;
pub(crate) mod recorder;
#[cfg(test)]
mod throwaway_server;
pub(crate) mod waits;
pub(crate) mod zfs;

use crate::cluster::client::{Client, ServerAddress};
use crate::error::Result;
use crate::host::Host;
use crate::record::column::Column;
use crate::record::facts::DeviceFacts;
use crate::record::seconds::{Row, Value};
use crate::record::stack::BaseName;
use std::time::Duration;

/// Every sampler, in column order.
///
/// PostgreSQL comes last: a slow server delays no other source's reading of the same second.
pub const ALL: &[&dyn Sampler] = &[
    &diskstats::Diskstats,
    &cpu::Cpu,
    &memory::MemorySampler,
    &pressure::PressureSampler,
    &processes::Processes,
    &zfs::ZfsSampler,
    &postgres::Postgres,
];

/// Identifies pgstrata's own connections to the server (`application_name`), so that they are not counted as clients.
pub(crate) const APPLICATION_NAME: &str = "pgstrata";

/// The objects to sample in one trial.
#[derive(Debug, Clone, Default)]
pub struct SampledObjects {
    /// The block devices of the stack, by node name.
    pub devices: Vec<(BaseName, DeviceFacts)>,
    /// ZFS pools below it, by name.
    pub pools: Vec<String>,
    /// The server's address; `None` if the workload runs without one.
    pub server: Option<ServerAddress>,
}

/// One source of counters.
pub trait Sampler: Sync {
    /// Name of the source, `diskstats`, and one sentence for the manual.
    fn about(&self) -> (&'static str, &'static str);
    fn columns(&self, target: &SampledObjects) -> Vec<Column>;
    /// Prepares for reading. An absent source must return an error that says why.
    ///
    /// # Errors
    /// Why there is nothing to read (no such file in this kernel, server unreachable): becomes a gap with this reason.
    fn open(&self, host: &Host, target: &SampledObjects) -> Result<Reading>;
}

/// Reads all counters of an open source now, one value (or none) for each of the sampler's columns, in order. An error
/// becomes a gap for this second.
pub type Reading = Box<dyn FnMut() -> Result<Row> + Send>;

/// Connections to the server during a measurement: one for the sampler `postgres`, one for the waits.
pub(crate) const CONNECTIONS: u64 = 2;

/// Limit for the server's answer: beyond it all sources would miss the next tick.
const ANSWER_LIMIT: Duration = Duration::from_millis(900);

/// A connection for statistics: identified by [`APPLICATION_NAME`], with a timeout for hanging servers before the next
/// second.
fn connect(address: &ServerAddress) -> Result<Client> {
    let mut client = Client::connect(address, ANSWER_LIMIT)?;
    client.query(&format!("SET application_name = '{APPLICATION_NAME}'"))?;
    client.query("SET statement_timeout = '800ms'")?;
    Ok(client)
}

/// A column and how to compute it from a source reading.
type ColumnSource<C, S> = (C, fn(&S) -> Option<u64>);

/// A whole number, if present.
fn count(number: impl Into<Option<u64>>) -> Option<Value> {
    number.into().map(Value::Count)
}

#[cfg(test)]
mod tests {
    use super::{ALL, SampledObjects};
    use crate::record::facts::DeviceFacts;
    use crate::record::seconds::{client_columns, key_columns};
    use crate::record::stack::BaseName;
    use std::collections::BTreeSet;

    #[test]
    fn every_column_has_a_unique_name_unit_and_source() {
        let devices = vec![(BaseName("disk".to_owned()), DeviceFacts::default())];
        let target = SampledObjects { devices, pools: vec!["tank".to_owned()], server: None };
        let sampled = ALL.iter().flat_map(|sampler| sampler.columns(&target));
        let columns: Vec<_> = key_columns().into_iter().chain(client_columns()).chain(sampled).collect();
        let names: BTreeSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names.len(), columns.len());
        for column in &columns {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(column.name.chars().all(plain), "{}", column.name);
            assert!(column.doc.len() > 10 && !column.doc.ends_with('.'), "{}: {}", column.name, column.doc);
            let says_unit = column.name.split('_').any(|part| part == column.unit);
            assert!(says_unit || !["ns", "us", "ms", "bytes"].contains(&column.unit.as_str()), "{}", column.name);
        }
    }

    #[test]
    fn every_source_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = ALL.iter().map(|sampler| sampler.about().0).collect();
        assert_eq!(names.len(), ALL.len());
        assert!(!names.contains(super::recorder::CLOCK));
    }
}
