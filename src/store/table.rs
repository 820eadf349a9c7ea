//! A Parquet file of few rows and named columns of several types: `trials.parquet`.
//!
//! As in `seconds.parquet`, whole numbers are signed INT64, a cell without a value is NULL, and the file says itself what its
//! columns are, as JSON under [`super::seconds::COLUMNS_KEY`].

use super::seconds::COLUMNS_KEY;
use crate::error::{Error, Result};
use crate::host::files;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Count(u64),
    Number(f64),
    Text(String),
    Flag(bool),
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CellType {
    Count,
    Number,
    Text,
    Flag,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableColumn {
    pub name: String,
    /// `ms`, `bytes`, `1/s`; empty where there is none.
    pub unit: &'static str,
    pub of: CellType,
    /// What it is.
    pub doc: &'static str,
}

/// Writes a table, whole or not at all.
///
/// # Errors
/// With the path; a cell of another type than its column is a fault of ours.
pub fn write(path: &Path, columns: &[TableColumn], rows: &[Vec<Option<Cell>>]) -> Result<()> {
    let bytes = encode(columns, rows).map_err(|e| Error::bug(format!("{} cannot be made: {e}", path.display())))?;
    files::write_whole(path, &bytes)
}

fn encode(columns: &[TableColumn], rows: &[Vec<Option<Cell>>]) -> Result<Vec<u8>, ParquetError> {
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("trial").with_fields(fields).build()?;
    let described = KeyValue::new(COLUMNS_KEY.to_owned(), serde_json::to_string(columns).unwrap_or_default());
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![described]))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    if !rows.is_empty() {
        let mut group = file.next_row_group()?;
        let mut place = 0;
        while let Some(mut column) = group.next_column()? {
            let cells: Vec<Option<&Cell>> = rows.iter().map(|row| row.get(place).and_then(Option::as_ref)).collect();
            write_column(column.untyped(), &cells)?;
            column.close()?;
            place += 1;
        }
        group.close()?;
    }
    file.into_inner()
}

fn field(column: &TableColumn) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column.of {
        CellType::Count => (Physical::INT64, None),
        CellType::Number => (Physical::DOUBLE, None),
        CellType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        CellType::Flag => (Physical::BOOLEAN, None),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
        .map(Arc::new)
}

fn write_column(writer: &mut ColumnWriter<'_>, cells: &[Option<&Cell>]) -> Result<(), ParquetError> {
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let mut there = cells.iter().copied().flatten();
    let mismatch = || ParquetError::General("a cell of another type than its column".to_owned());
    match writer {
        ColumnWriter::Int64ColumnWriter(writer) => {
            let of = |cell: &Cell| if let Cell::Count(n) = cell { i64::try_from(*n).ok() } else { None };
            let values = there.map(of).collect::<Option<Vec<i64>>>().ok_or_else(mismatch)?;
            writer.write_batch(&values, Some(&levels), None)?;
        }
        ColumnWriter::DoubleColumnWriter(writer) => {
            let of = |cell: &Cell| if let Cell::Number(n) = cell { Some(*n) } else { None };
            let values = there.map(of).collect::<Option<Vec<f64>>>().ok_or_else(mismatch)?;
            writer.write_batch(&values, Some(&levels), None)?;
        }
        ColumnWriter::BoolColumnWriter(writer) => {
            let of = |cell: &Cell| if let Cell::Flag(flag) = cell { Some(*flag) } else { None };
            let values = there.map(of).collect::<Option<Vec<bool>>>().ok_or_else(mismatch)?;
            writer.write_batch(&values, Some(&levels), None)?;
        }
        ColumnWriter::ByteArrayColumnWriter(writer) => {
            let of = |cell: &Cell| match cell {
                Cell::Text(text) => Some(ByteArray::from(text.as_bytes().to_vec())),
                Cell::Count(_) | Cell::Number(_) | Cell::Flag(_) => None,
            };
            let values = there.by_ref().map(of).collect::<Option<Vec<ByteArray>>>().ok_or_else(mismatch)?;
            writer.write_batch(&values, Some(&levels), None)?;
        }
        _ => return Err(mismatch()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, of: CellType) -> TableColumn {
        TableColumn { name: name.to_owned(), unit: "", of, doc: "" }
    }

    #[test]
    fn a_cell_of_another_type_than_its_column_is_an_error() {
        let columns = [column("n", CellType::Count), column("x", CellType::Number)];
        let row = vec![Some(Cell::Count(1)), Some(Cell::Number(0.5))];
        assert!(encode(&columns, &[row.clone(), vec![None, None]]).is_ok());
        let swapped: Vec<Option<Cell>> = row.into_iter().rev().collect();
        assert!(encode(&columns, &[swapped]).is_err());
    }
}
