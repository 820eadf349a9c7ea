//! Input of the analysis: the run, then one trial after another, as plain data.
//!
//! Readers of a run folder fill these types. Trials are passed one at a time, so that memory holds the rows of only
//! one. Files and their formats are out of scope.

use crate::analyse::trial::reads;
use crate::record::case::TrialKey;
use crate::record::columns::{ColumnDef, DeviceColumn};
use crate::record::merged::MergeRecord;
use crate::record::run::RunRecord;
use crate::record::trial::TrialRecord;
use crate::record::verdict::VerdictRecord;
use crate::store::seconds::{ColumnData, CountColumn, TextColumn};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq)]
pub struct RunInput {
    /// `run.json`.
    pub run: RunRecord,
    /// `plan.toml` as given by the user.
    pub plan_text: String,
    /// Wall time of the whole run, microseconds; `None` if the run has not ended.
    pub wall_us: Option<u64>,
    /// Time spent measuring a workload, microseconds.
    pub measured_us: Option<u64>,
    /// Path of the run folder, quoted for a shell.
    pub folder: String,
    /// What is missing from `events.jsonl`, in words.
    pub lost_events: Option<String>,
    /// Trials without a record yet.
    pub pending: Vec<TrialKey>,
    /// Trials with damaged files, each with the reason.
    pub damaged: Vec<(TrialKey, String)>,
    /// Cost of a power cut, if requested.
    pub verdicts: Vec<VerdictRecord>,
    /// Sources of a merged run.
    pub merge: Option<MergeRecord>,
}

/// Latencies in microseconds by the measure's name.
pub(crate) type Latencies = [(String, Histogram<u64>)];

/// One trial with all its data.
#[derive(Debug, Clone, Default)]
pub struct TrialInput {
    /// `trial.json`.
    pub record: TrialRecord,
    /// `seconds.parquet`; empty if the trial has none.
    pub seconds: Seconds,
    /// `latency.hist`: latencies in microseconds by the measure's name.
    pub latencies: Vec<(String, Histogram<u64>)>,
    /// Latencies of the main measure inside and outside checkpoints.
    pub phases: PhaseLatencies,
    /// Latencies of the main measure per interval, on a coarse scale.
    pub heat: Vec<HeatInterval>,
}

/// Operations of one interval by heatmap row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeatInterval {
    /// Start of the interval, microseconds after the first operation began.
    pub start_us: u64,
    /// Non-empty rows with their number of operations, ascending.
    pub rows: Vec<(u32, u64)>,
}

/// Latencies of a trial's main measure in the intervals entirely within a checkpoint, and in those entirely outside.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PhaseLatencies {
    pub inside: Option<Histogram<u64>>,
    pub outside: Option<Histogram<u64>>,
}

/// Rows of one trial, stored by column and looked up by name.
///
/// Row k was read after second k of the measurement, row 0 at its start. Rows are dense: a missed tick is a row without
/// readings. Columns that the analysis does not read ([`crate::analyse::trial::reads`]) may be left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seconds {
    rows: usize,
    columns: BTreeMap<String, ColumnData>,
}

impl Seconds {
    pub fn of(columns: BTreeMap<String, ColumnData>) -> Seconds {
        let rows = columns.values().map(|column| match column {
            ColumnData::Count(counts) => counts.rows(),
            ColumnData::Text(texts) => texts.codes.len(),
        });
        let rows = rows.max().unwrap_or(0);
        Seconds { rows, columns }
    }

    /// Creates `rows` rows, including row 0, without columns.
    #[cfg(test)]
    pub fn new(rows: usize) -> Seconds {
        Seconds { rows, columns: BTreeMap::new() }
    }

    /// Number of rows, including row 0.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Adds an integer column; `present[row]` says if `values[row]` was read. Rows beyond the end of either are absent,
    /// values beyond the last row are dropped.
    #[cfg(test)]
    #[expect(clippy::needless_pass_by_value, reason = "tests hand over what they have made")]
    pub fn push_counts(&mut self, name: impl Into<String>, values: Vec<u64>, present: &[bool]) {
        let read = |row: usize| values.get(row).copied().filter(|_| present.get(row) == Some(&true));
        self.columns.insert(name.into(), ColumnData::Count(CountColumn((0..self.rows).map(read).collect())));
    }

    #[cfg(test)]
    pub fn push_texts<'t>(&mut self, name: impl Into<String>, values: impl IntoIterator<Item = Option<&'t str>>) {
        let mut words: Vec<String> = Vec::new();
        let mut codes = Vec::with_capacity(self.rows);
        for value in values.into_iter().take(self.rows) {
            let code = value.map(|text| {
                let known = words.iter().position(|word| word == text);
                known.unwrap_or_else(|| {
                    words.push(text.to_owned());
                    words.len() - 1
                })
            });
            codes.push(code.map(|code| u32::try_from(code).unwrap()));
        }
        codes.resize(self.rows, None);
        self.columns.insert(name.into(), ColumnData::Text(TextColumn { words, codes }));
    }

    /// Keeps the columns whose names satisfy `keep`.
    #[cfg(test)]
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.columns.retain(|name, _| keep(name));
    }

    /// An integer column; `None` if absent or of another type.
    pub fn counts(&self, column: &ColumnDef) -> Option<&CountColumn> {
        self.numbers(column.name)
    }

    /// An integer column of a device, like [`Seconds::counts`]; `prefix` is the device's prefix from
    /// [`crate::record::built::StackFacts::device_columns`].
    pub fn device_counts(&self, prefix: &str, column: &DeviceColumn) -> Option<&CountColumn> {
        self.numbers(&column.name(prefix))
    }

    /// An integer column by its name, like [`Seconds::counts`].
    pub fn numbers(&self, name: &str) -> Option<&CountColumn> {
        if let ColumnData::Count(counts) = self.column(name)? { Some(counts) } else { None }
    }

    /// A text column; `None` if absent or of another type.
    pub fn texts(&self, column: &ColumnDef) -> Option<&TextColumn> {
        if let ColumnData::Text(texts) = self.column(column.name)? { Some(texts) } else { None }
    }

    fn column(&self, name: &str) -> Option<&ColumnData> {
        debug_assert!(reads::wanted(name), "analysis reads `{name}`, which `analyse::reads` does not list");
        self.columns.get(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::columns;

    #[test]
    fn an_absent_reading_is_not_a_zero() {
        let mut seconds = Seconds::new(4);
        seconds.push_counts("client_done", vec![7, 0, 9], &[true, false, true]);
        let n = seconds.counts(&columns::CLIENT_DONE).unwrap();
        assert_eq!([n.at(0), n.at(1), n.at(2), n.at(3), n.at(4)], [Some(7), None, Some(9), None, None]);
    }

    #[test]
    fn texts_come_back_as_they_were_given() {
        let mut seconds = Seconds::new(4);
        seconds.push_texts("others_name", [None, Some("postgres"), Some("kworker"), Some("postgres")]);
        let name = seconds.texts(&columns::OTHERS_NAME).unwrap();
        assert_eq!(
            [name.at(0), name.at(1), name.at(2), name.at(3)],
            [None, Some("postgres"), Some("kworker"), Some("postgres")]
        );
        assert_eq!(name.words.len(), 2);
    }

    #[test]
    fn a_column_of_another_type_or_name_is_not_there() {
        let mut seconds = Seconds::new(1);
        seconds.push_counts("others_name", vec![1], &[true]);
        assert!(seconds.texts(&columns::OTHERS_NAME).is_none() && seconds.counts(&columns::TIME_US).is_none());
    }
}
