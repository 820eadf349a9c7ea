//! `seconds.parquet`: one row per second of one trial, written as the seconds arrive, read by column.
//!
//! The file also describes its columns, as JSON under the key [`COLUMNS_KEY`]: name, unit, kind, meaning. Whole numbers
//! are stored as signed INT64, so that a difference of two counters cannot overflow in SQL. A row group holds up to
//! [`ROWS_IN_GROUP`] rows: memory does not grow with the length of a trial.

use super::staging::SECONDS;
use crate::error::{Context, Error, Result};
use crate::host::files;
use crate::record::column::{Column, ColumnType};
use crate::record::seconds::{Row, Value};
use crate::store::checked::must_have;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, get_typed_column_reader};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows kept in memory before they are written: an hour.
const ROWS_IN_GROUP: usize = 3600;

/// Metadata key of the column descriptions.
pub const COLUMNS_KEY: &str = "pgstrata.columns";

pub struct SecondsWriter {
    path: PathBuf,
    file: SerializedFileWriter<File>,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

/// Values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnData {
    Count(CountColumn),
    Text(TextColumn),
}

/// Whole numbers: a reading, or none, for each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountColumn(pub Vec<Option<u64>>);

impl CountColumn {
    /// Number of rows, present or not.
    pub fn rows(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub fn at(&self, row: usize) -> Option<u64> {
        self.0.get(row).copied().flatten()
    }

    /// True if any row has a reading.
    pub fn any(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }
}

/// Texts, dictionary-encoded: few distinct ones over many rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextColumn {
    /// Distinct texts, in the order of their first row.
    pub words: Vec<String>,
    /// Index into `words`, or none, for each row.
    pub codes: Vec<Option<u32>>,
}

impl TextColumn {
    pub fn at(&self, row: usize) -> Option<&str> {
        self.code(row).and_then(|code| self.words.get(code)).map(String::as_str)
    }

    /// Index of a row's text in `words`.
    #[inline]
    pub fn code(&self, row: usize) -> Option<usize> {
        self.codes.get(row).copied().flatten().map(|code| code as usize)
    }
}

impl SecondsWriter {
    /// Begins the file.
    ///
    /// # Errors
    /// With the path.
    pub fn create(path: &Path, columns: Vec<Column>) -> Result<SecondsWriter> {
        let fields = columns.iter().map(|column| field(&column.name, column.of)).collect::<Result<Vec<_>, _>>();
        let begun = fields.and_then(|fields| {
            let schema = Type::group_type_builder("second").with_fields(fields).build()?;
            SerializedFileWriter::new(File::create(path)?, Arc::new(schema), Arc::new(properties(&columns)))
        });
        let file = begun.or_store(|| format!("begin {}", path.display()))?;
        Ok(SecondsWriter { path: path.to_path_buf(), file, columns, rows: Vec::new() })
    }

    /// Appends a row: one value, or none, for each column.
    ///
    /// # Errors
    /// With the path, if the disk is full.
    pub fn push(&mut self, row: Row) -> Result<()> {
        if row.len() != self.columns.len() {
            return Err(Error::bug(format!("a row of {} values for {} columns", row.len(), self.columns.len())));
        }
        self.rows.push(row);
        if self.rows.len() >= ROWS_IN_GROUP { self.flush() } else { Ok(()) }
    }

    /// Writes the remaining rows and closes the file.
    ///
    /// # Errors
    /// With the path.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.file.finish().or_store(|| format!("finish {}", self.path.display()))?;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        write_group(&mut self.file, &rows).or_store(|| format!("write {}", self.path.display()))
    }
}

/// Whole numbers are counters and gauges that change little from row to row: delta-encoded they take few bits and are
/// read several times faster than through a general compressor. The rest is compressed with snappy, text
/// dictionary-encoded.
fn properties(columns: &[Column]) -> WriterProperties {
    let described = serde_json::to_string(columns).unwrap_or_default();
    let described = KeyValue::new(COLUMNS_KEY.to_owned(), described);
    let mut properties =
        WriterProperties::builder().set_compression(Compression::SNAPPY).set_key_value_metadata(Some(vec![described]));
    for column in columns.iter().filter(|column| column.of == ColumnType::Count) {
        let path = ColumnPath::from(column.name.as_str());
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
            .set_column_compression(path, Compression::UNCOMPRESSED);
    }
    properties.build()
}

pub(super) fn field(name: &str, of: ColumnType) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match of {
        ColumnType::Count => (Physical::INT64, None),
        ColumnType::Number => (Physical::DOUBLE, None),
        ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnType::Flag => (Physical::BOOLEAN, None),
    };
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
        .map(Arc::new)
}

pub(super) fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    rows: &[Row],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    let mut index = 0;
    while let Some(mut column) = group.next_column()? {
        let values = rows.iter().map(|row| row[index].as_ref());
        match column.untyped() {
            ColumnWriter::Int64ColumnWriter(writer) => write_values(writer, values, |value| match value {
                Value::Count(n) => i64::try_from(*n).ok(),
                _ => None,
            })?,
            ColumnWriter::DoubleColumnWriter(writer) => {
                write_values(writer, values, |value| if let Value::Number(n) = value { Some(*n) } else { None })?;
            }
            ColumnWriter::BoolColumnWriter(writer) => {
                write_values(writer, values, |value| if let Value::Flag(is) = value { Some(*is) } else { None })?;
            }
            ColumnWriter::ByteArrayColumnWriter(writer) => write_values(writer, values, |value| match value {
                Value::Text(text) => Some(ByteArray::from(text.as_bytes().to_vec())),
                _ => None,
            })?,
            _ => return Err(ParquetError::General(format!("column {index} has an unknown type"))),
        }
        column.close()?;
        index += 1;
    }
    group.close()?;
    Ok(())
}

/// Writes the present values, and for each row whether it has one (definition level 1) or not (0).
fn write_values<'a, T: DataType>(
    writer: &mut ColumnWriterImpl<'_, T>,
    values: impl Iterator<Item = Option<&'a Value>>,
    take: impl Fn(&Value) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let (mut present, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        if let Some(value) = value {
            let mismatch = || ParquetError::General("a value of another type than its column".to_owned());
            present.push(take(value).ok_or_else(mismatch)?);
        }
    }
    writer.write_batch(&present, Some(&levels), None).map(drop)
}

/// Reads the columns of a trial's `seconds.parquet` selected by `wanted`.
///
/// # Errors
/// With the path, if the file is damaged or truncated.
pub fn read(trial: &Path, wanted: impl Fn(&str) -> bool) -> Result<BTreeMap<String, ColumnData>> {
    must_have(read_file(trial, SECONDS, wanted)?, &trial.join(SECONDS))
}

/// As [`read`], for a file of this name; `None` if it does not exist.
pub(super) fn read_file(
    trial: &Path,
    name: &str,
    wanted: impl Fn(&str) -> bool,
) -> Result<Option<BTreeMap<String, ColumnData>>> {
    let damaged = || format!("read {}", trial.join(name).display());
    let Some(file) = files::open_within(trial, name)? else { return Ok(None) };
    let reader = SerializedFileReader::new(file)
        .map_err(|e| Error::store(e.to_string()).hint("the file is damaged: this trial must be measured again"))
        .map_err(|e| e.while_doing(damaged()))?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut columns = BTreeMap::new();
    for (index, column) in schema.columns().iter().enumerate() {
        let name = column.name();
        if !wanted(name) {
            continue;
        }
        let data = read_column(&reader, index, column.physical_type()).or_store(damaged)?;
        columns.insert(name.to_owned(), data);
    }
    Ok(Some(columns))
}

fn read_column(reader: &SerializedFileReader<File>, index: usize, of: Physical) -> Result<ColumnData, ParquetError> {
    Ok(match of {
        Physical::INT64 => {
            // Counters are written from u64 and are never negative.
            ColumnData::Count(CountColumn(spread::<Int64Type, _>(reader, index, |n| u64::try_from(*n).unwrap_or(0))?))
        }
        Physical::BYTE_ARRAY => {
            let mut dictionary = Dictionary::default();
            let codes = spread::<ByteArrayType, _>(reader, index, |text| dictionary.code(text.data()))?;
            ColumnData::Text(TextColumn { words: dictionary.words, codes })
        }
        other => return Err(ParquetError::General(format!("column {index} has the unknown type {other}"))),
    })
}

/// The distinct texts of a column, numbered in order of appearance.
#[derive(Default)]
struct Dictionary {
    words: Vec<String>,
    codes: HashMap<Vec<u8>, u32>,
    last: Option<u32>,
}

impl Dictionary {
    fn code(&mut self, text: &[u8]) -> u32 {
        // Most rows repeat the previous row.
        if let Some(last) = self.last.filter(|last| self.words[*last as usize].as_bytes() == text) {
            return last;
        }
        let code = self.codes.get(text).copied().unwrap_or_else(|| {
            let code = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
            self.words.push(String::from_utf8_lossy(text).into_owned());
            self.codes.insert(text.to_vec(), code);
            code
        });
        self.last = Some(code);
        code
    }
}

/// All rows of one column.
fn spread<T: DataType, V>(
    reader: &SerializedFileReader<File>,
    index: usize,
    mut take: impl FnMut(&T::T) -> V,
) -> Result<Vec<Option<V>>, ParquetError> {
    let total = usize::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0);
    let mut all = Vec::with_capacity(total);
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let column: ColumnReader = group.get_column_reader(index)?;
        let mut column = get_typed_column_reader::<T>(column);
        let (mut values, mut levels) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        while levels.len() < rows {
            let (records, _, _) = column.read_records(rows - levels.len(), Some(&mut levels), None, &mut values)?;
            if records == 0 {
                return Err(ParquetError::General(format!("column {index} ends before its last row")));
            }
        }
        if values.len() == rows {
            all.extend(values.iter().map(|value| Some(take(value))));
            continue;
        }
        let mut values = values.iter();
        for level in levels {
            let value = if level == 1 { values.next() } else { None };
            all.push(value.map(&mut take));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::columns::{self, ColumnDef};
    use crate::record::seconds::{client_columns, key_columns};
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use std::fs;

    fn columns() -> Vec<Column> {
        [columns::PG_WAL_BYTES, columns::MEM_DIRTY_BYTES, columns::OTHERS_NAME].iter().map(ColumnDef::column).collect()
    }

    fn written(rows: &[Row]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = SecondsWriter::create(&folder.path().join("seconds.parquet"), columns()).unwrap();
        for row in rows {
            writer.push(row.clone()).unwrap();
        }
        writer.finish().unwrap();
        folder
    }

    fn row(n: u64) -> Row {
        vec![Some(Value::Count(n)), (!n.is_multiple_of(3)).then_some(Value::Count(7 * n)), None]
    }

    #[test]
    fn rows_over_several_groups_are_read_back_with_their_holes() {
        let rows: Vec<Row> = (0..(2 * ROWS_IN_GROUP + 5) as u64).map(row).collect();
        let folder = written(&rows);
        let read = read(folder.path(), |name| name != "others_name").unwrap();
        assert_eq!(read.len(), 2);
        let counted = (0..rows.len() as u64).map(Some).collect();
        assert_eq!(read["pg_wal_bytes"], ColumnData::Count(CountColumn(counted)));
        let ColumnData::Count(values) = &read["mem_dirty_bytes"] else { panic!("{read:?}") };
        assert_eq!((values.at(3), values.at(4)), (None, Some(28)));
    }

    #[test]
    fn the_file_says_what_its_columns_are() {
        let folder = written(&[row(1)]);
        let file = File::open(folder.path().join("seconds.parquet")).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let found = metadata.iter().find(|entry| entry.key == COLUMNS_KEY).and_then(|entry| entry.value.clone());
        let found: Vec<Column> = serde_json::from_str(&found.unwrap()).unwrap();
        assert_eq!(found, columns());
        assert_eq!(found[1].unit, "bytes");
    }

    #[test]
    fn a_file_cut_off_at_any_place_is_an_error() {
        let folder = written(&(0..50).map(row).collect::<Vec<_>>());
        let path = folder.path().join("seconds.parquet");
        let whole = fs::read(&path).unwrap();
        for length in [0, 1, 4, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            let error = read(folder.path(), |_| true).unwrap_err().to_string();
            assert!(error.contains("seconds.parquet"), "{error}");
        }
    }

    #[test]
    fn the_columns_that_every_row_has_are_distinct() {
        let names: Vec<String> = key_columns().into_iter().chain(client_columns()).map(|c| c.name).collect();
        let mut unique = names.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
    }

    proptest! {
        #[test]
        fn any_text_and_number_survive(n in any::<Option<u32>>(), m in proptest::option::of(0..1u64 << 63), text in any::<Option<String>>()) {
            let row = vec![
                n.map(|n| Value::Count(u64::from(n))),
                m.map(Value::Count),
                text.clone().map(Value::Text),
            ];
            let read = read(written(&[row]).path(), |_| true).unwrap();
            let count = |n: Option<u64>| ColumnData::Count(CountColumn(vec![n]));
            prop_assert_eq!(&read["pg_wal_bytes"], &count(n.map(u64::from)));
            prop_assert_eq!(&read["mem_dirty_bytes"], &count(m));
            let code = text.as_ref().map(|_| 0);
            let words = text.into_iter().collect();
            prop_assert_eq!(&read["others_name"], &ColumnData::Text(TextColumn { words, codes: vec![code] }));
        }
    }
}
