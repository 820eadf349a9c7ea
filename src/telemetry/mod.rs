//! Raw counters with time stamps, once a second, gaps marked; and what the backends wait for, ten times a second.
//!
//! A sampler is one file and one line in [`ALL`]. It reads raw counters and stores them raw: rates, percentiles and
//! cases are for `analyse`. Columns have the same name and meaning in every trial; those of devices are named by the nodes
//! of the stack. What is not there is absent.
//!
//! Cost, measured with 300 processes and 16 clients on 2 virtual CPUs (release build, PostgreSQL 15): 1.8 ms of CPU for
//! a row of all sources, 0.7 ms a second for the waits, together 0.25 % of a core. The server's own share of answering
//! is not in that.
//!
//! # Add a sampler
//!
//! Its columns in `record::columns`, with name, unit, kind and meaning; then its file here and its `mod` and `ALL`
//! lines; it pairs each column with where its value comes from. Analysis asks `Seconds` by the same definition and
//! lists the column in `analyse::trial::reads`; one that it does not read stands in `KEPT_FOR_READERS` of
//! `tests/house/columns.rs`, with the reason why people want it. It speaks SQL, so it uses the cluster's client, and
//! nothing else of it.

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
use crate::record::stack::GroundName;
use std::time::Duration;

/// Every sampler, in the order of the columns.
///
/// PostgreSQL comes last: a server that answers late delays no other source's reading of the same second.
pub const ALL: &[&dyn Sampler] = &[
    &diskstats::Diskstats,
    &cpu::Cpu,
    &memory::Memory,
    &pressure::Pressure,
    &processes::Processes,
    &zfs::Zfs,
    &postgres::Postgres,
];

/// By this name pgstrata's own connections to the server are known (`application_name`), so that they are not counted
/// as clients.
pub(crate) const APPLICATION_NAME: &str = "pgstrata";

/// What there is to sample in one trial.
#[derive(Debug, Clone, Default)]
pub struct Target {
    /// The block devices of the stack, by the names of their nodes.
    pub devices: Vec<(GroundName, DeviceFacts)>,
    /// The ZFS pools that it stands on, by name.
    pub pools: Vec<String>,
    /// How to reach the server; `None` where the workload runs without one.
    pub server: Option<ServerAddress>,
}

/// One source of counters.
pub trait Sampler: Sync {
    /// Its name: `diskstats`.
    fn name(&self) -> &'static str;
    /// One sentence for the manual.
    fn doc(&self) -> &'static str;
    /// Its columns for a target.
    fn columns(&self, target: &Target) -> Vec<Column>;
    /// Gets ready to read. `Ok(None)` with nothing to say is not allowed: a source that is absent says why.
    ///
    /// # Errors
    /// Why there is nothing to read (no such file in this kernel, server unreachable): becomes a gap with this reason.
    fn open(&self, host: &Host, target: &Target) -> Result<Reading>;
}

/// Reads all counters of an open source now, one value (or none) for each of the sampler's columns, in their order. An error
/// says why this second has none: it becomes a gap.
pub type Reading = Box<dyn FnMut() -> Result<Row> + Send>;

/// Connections to the server that are held during a measurement: the sampler `postgres` and the waits have one each.
pub(crate) const CONNECTIONS: u64 = 2;

/// How long the server may be silent: longer would cost all sources the next tick.
const ANSWER_LIMIT: Duration = Duration::from_millis(900);

/// A connection for statistics: known by [`APPLICATION_NAME`], and giving up a query that a hanging server does not
/// answer before the next second.
fn connect(address: &ServerAddress) -> Result<Client> {
    let mut client = Client::connect(address, ANSWER_LIMIT)?;
    client.query(&format!("SET application_name = '{APPLICATION_NAME}'"))?;
    client.query("SET statement_timeout = '800ms'")?;
    Ok(client)
}

/// A column and its value in what was read of its source.
type ColumnSource<C, S> = (C, fn(&S) -> Option<u64>);

/// A whole number, where there is one.
fn count(number: impl Into<Option<u64>>) -> Option<Value> {
    number.into().map(Value::Count)
}

#[cfg(test)]
mod tests {
    use super::{ALL, Target};
    use crate::record::facts::DeviceFacts;
    use crate::record::seconds::{client_columns, key_columns};
    use crate::record::stack::GroundName;
    use std::collections::BTreeSet;

    #[test]
    fn every_column_has_a_name_of_its_own_with_its_unit_and_says_where_it_comes_from() {
        let devices = vec![(GroundName("disk".to_owned()), DeviceFacts::default())];
        let target = Target { devices, pools: vec!["tank".to_owned()], server: None };
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
        let names: BTreeSet<&str> = ALL.iter().map(|sampler| sampler.name()).collect();
        assert_eq!(names.len(), ALL.len());
        assert!(!names.contains(super::recorder::CLOCK));
    }
}
