//! One column of the rows of a trial.

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
    /// UTF-8.
    Text,
}

/// One column: name with unit, kind, type and meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name in the file, unit included: `dev_loop_write_bytes`.
    pub name: String,
    /// Unit: `bytes`, `us`, `ms`, `ns`, `operations`, or empty for text.
    pub unit: String,
    /// What its number means.
    pub kind: ColumnKind,
    /// How it is stored.
    pub of: ColumnType,
    /// One sentence with the source (file of the kernel, view of PostgreSQL).
    pub doc: String,
}
