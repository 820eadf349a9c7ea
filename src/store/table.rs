//! A Parquet file of few rows and named columns of several types: `trials.parquet`, `turns.parquet`.
//!
//! As in `seconds.parquet`, whole numbers are signed INT64, a cell without a value is NULL, and the file describes its
//! own columns, as JSON under [`super::seconds::COLUMNS_KEY`].

use super::seconds::{COLUMNS_KEY, field, write_group};
use crate::error::{Error, Result};
use crate::host::files;
use crate::record::column::ColumnType;
use crate::record::seconds::Row;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParquetColumn {
    pub name: String,
    /// `ms`, `bytes`, `1/s`; may be empty.
    pub unit: &'static str,
    pub of: ColumnType,
    /// Description.
    pub doc: &'static str,
}

impl ParquetColumn {
    /// Columns by name, unit, type and description.
    pub fn all(of: &[(&str, &'static str, ColumnType, &'static str)]) -> Vec<ParquetColumn> {
        of.iter().map(|(name, unit, of, doc)| ParquetColumn { name: (*name).to_owned(), unit, of: *of, doc }).collect()
    }
}

/// Writes a table, whole or not at all.
///
/// # Errors
/// With the path; a cell whose type differs from its column's is a bug.
pub fn write(path: &Path, columns: &[ParquetColumn], rows: &[Row]) -> Result<()> {
    let bytes = encode(columns, rows).map_err(|e| Error::bug(format!("{} cannot be made: {e}", path.display())))?;
    files::write_whole(path, &bytes)
}

fn encode(columns: &[ParquetColumn], rows: &[Row]) -> Result<Vec<u8>, ParquetError> {
    let fields = columns.iter().map(|column| field(&column.name, column.of)).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("trial").with_fields(fields).build()?;
    let described = KeyValue::new(COLUMNS_KEY.to_owned(), serde_json::to_string(columns).unwrap_or_default());
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![described]))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    if !rows.is_empty() {
        write_group(&mut file, rows)?;
    }
    file.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::seconds::Value;

    fn column(name: &str, of: ColumnType) -> ParquetColumn {
        ParquetColumn { name: name.to_owned(), unit: "", of, doc: "" }
    }

    #[test]
    fn a_cell_that_mismatches_its_column_type_is_an_error() {
        let columns = [column("n", ColumnType::Count), column("x", ColumnType::Number)];
        let row = vec![Some(Value::Count(1)), Some(Value::Number(0.5))];
        assert!(encode(&columns, &[row.clone(), vec![None, None]]).is_ok());
        let swapped: Row = row.into_iter().rev().collect();
        assert!(encode(&columns, &[swapped]).is_err());
    }
}
