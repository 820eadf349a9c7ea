//! One column of the rows of a trial.

use serde::{Deserialize, Serialize};

/// Meaning of a column's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Grows without bound from some start; only differences between rows are meaningful.
    Counter,
    /// A state at the moment of the row.
    Gauge,
    /// Activity between the previous row and this one.
    Interval,
}

/// Storage type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// Unsigned 64-bit, stored as INT64.
    Count,
    /// DOUBLE.
    Number,
    /// UTF-8.
    Text,
    /// BOOLEAN.
    Flag,
}

/// One column: name with unit, kind, type and meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column<T = String> {
    /// Name in the file, unit included: `dev_loop_write_bytes`.
    pub name: T,
    /// Unit: `bytes`, `us`, `ms`, `ns`, `operations`, or empty for text.
    pub unit: T,
    /// Meaning of its numbers.
    pub kind: ColumnKind,
    /// Storage type.
    pub of: ColumnType,
    /// One sentence with the source (file of the kernel, view of PostgreSQL).
    pub doc: T,
}

/// `lead` and the name in plain letters, numbered if taken.
pub(super) fn free_name(lead: &str, name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let letters = name.chars().map(|c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    let stem = format!("{lead}{}", letters.collect::<String>());
    let mut free = stem.clone();
    let mut number = 2;
    while is_taken(&free) {
        free = format!("{stem}_{number}");
        number += 1;
    }
    free
}
