//! The columns of `seconds.parquet`: one row a second of one trial.

use super::stack::GroundName;
use serde::{Deserialize, Serialize};

/// What a column's number means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Ever growing since some start; only differences between rows mean something.
    Counter,
    /// A state at the moment of the row.
    Gauge,
    /// What happened between the row before and this row.
    Interval,
}

/// How a column is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// Unsigned 64-bit, stored as INT64 (UINT_64).
    Count,
    /// DOUBLE.
    Real,
    /// UTF-8.
    Text,
}

/// One column: name with unit, kind, type and meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name in the file, unit included: `dev_loop_write_bytes`.
    pub name: String,
    /// Unit: `bytes`, `us`, `ms`, `operations`, `ticks`, `share`, or empty for text.
    pub unit: String,
    /// What its number means.
    pub kind: ColumnKind,
    /// How it is stored.
    pub of: ColumnType,
    /// One sentence with the source (file of the kernel, view of PostgreSQL).
    pub doc: String,
}

impl Column {
    /// A counter stored as a whole number.
    pub fn counter(name: impl Into<String>, unit: &str, doc: impl Into<String>) -> Column {
        Column {
            name: name.into(),
            unit: unit.to_owned(),
            kind: ColumnKind::Counter,
            of: ColumnType::Count,
            doc: doc.into(),
        }
    }

    /// A gauge stored as a whole number.
    pub fn gauge(name: impl Into<String>, unit: &str, doc: impl Into<String>) -> Column {
        Column { kind: ColumnKind::Gauge, ..Column::counter(name, unit, doc) }
    }

    /// A whole number of what happened since the row before.
    pub fn interval(name: impl Into<String>, unit: &str, doc: impl Into<String>) -> Column {
        Column { kind: ColumnKind::Interval, ..Column::counter(name, unit, doc) }
    }

    /// The same column stored as a real number.
    #[must_use]
    pub fn real(self) -> Column {
        Column { of: ColumnType::Real, ..self }
    }

    /// The same column stored as text.
    #[must_use]
    pub fn text(self) -> Column {
        Column { of: ColumnType::Text, ..self }
    }
}

/// How the columns of each device begin: `dev_` and the name of its node in plain letters, with a number where two would
/// be the same. For the devices of one stack in their order.
pub fn device_prefixes<'a>(names: impl IntoIterator<Item = &'a GroundName>) -> Vec<String> {
    let mut prefixes: Vec<String> = Vec::new();
    for name in names {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        let stem: String = format!("dev_{}", name.0.chars().map(plain).collect::<String>());
        let mut prefix = stem.clone();
        let mut number = 2;
        while prefixes.contains(&prefix) {
            prefix = format!("{stem}_{number}");
            number += 1;
        }
        prefixes.push(prefix);
    }
    prefixes
}

/// One reading.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// For [`ColumnType::Count`].
    Count(u64),
    /// For [`ColumnType::Real`].
    Real(f64),
    /// For [`ColumnType::Text`].
    Text(String),
}

/// One row: a reading, or none, for each column in order.
pub type Row = Vec<Option<Value>>;

/// Columns that every row starts with: which run, case, trial and second it is, and when.
#[must_use]
pub fn key_columns() -> Vec<Column> {
    vec![
        Column::gauge("run", "", "id of the run").text(),
        Column::gauge("case", "", "id of the case").text(),
        Column::gauge("trial", "", "number of the trial within its case, from 1"),
        Column::gauge("second", "s", "seconds since the measurement began; row 0 holds the counters at its start"),
        Column::gauge("time_us", "us", "wall clock at the row, microseconds since 1970-01-01 UTC"),
    ]
}

/// Columns of the client: what completed in the second that ends with the row. Absent in row 0.
#[must_use]
pub fn client_columns() -> Vec<Column> {
    vec![
        Column::interval("client_done", "operations", "operations (transactions) completed in the second"),
        Column::interval("client_failed", "operations", "operations that failed in the second"),
        Column::interval("client_skipped", "operations", "operations skipped because they were already late (-R -L)"),
        Column::interval("client_late", "operations", "operations slower than the latency limit (-L)"),
        Column::interval("client_latency_us_sum", "us", "sum of the latencies of the operations done"),
        Column::interval("client_latency_us_p50", "us", "median latency of the second; absent when nothing was done"),
        Column::interval("client_latency_us_p95", "us", "95th percentile"),
        Column::interval("client_latency_us_p99", "us", "99th percentile"),
        Column::interval("client_latency_us_p999", "us", "99.9th percentile"),
        Column::interval("client_latency_us_max", "us", "slowest operation of the second"),
    ]
}
