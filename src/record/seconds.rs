//! The rows of `seconds.parquet`, one per second of one trial. [`super::columns`] defines the columns.

use crate::record::column::{Column, free_name};
use crate::record::columns::{self, ColumnDef};
use crate::record::stack::BaseName;

/// Column prefixes of a stack's devices, in their order: `dev_` and the name of the node in plain letters, numbered to
/// resolve collisions.
pub fn device_prefixes<'a>(names: impl IntoIterator<Item = &'a BaseName>) -> Vec<String> {
    let mut prefixes: Vec<String> = Vec::new();
    for name in names {
        prefixes.push(free_name("dev_", &name.0, |prefix| prefixes.iter().any(|known| known == prefix)));
    }
    prefixes
}

/// One reading.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// For [`ColumnType::Count`].
    Count(u64),
    /// For [`ColumnType::Number`].
    Number(f64),
    /// For [`ColumnType::Text`].
    Text(String),
    /// For [`ColumnType::Flag`].
    Flag(bool),
}

/// One row: a reading, or none, for each column in order.
pub type Row = Vec<Option<Value>>;

/// Columns that every row starts with: [`columns::KEY`].
pub fn key_columns() -> Vec<Column> {
    columns::KEY.iter().map(ColumnDef::column).collect()
}

/// Columns of the client: [`columns::CLIENT`].
pub fn client_columns() -> Vec<Column> {
    columns::CLIENT.iter().map(ColumnDef::column).collect()
}
