//! Finds rows and figures in imported data.

use crate::record::imported::{ImportedCase, ImportedFigure, ImportedOutput, ImportedRow, ImportedTrial};

/// A row and its location.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundRow<'a> {
    pub(crate) case: &'a ImportedCase,
    pub(crate) trial: &'a ImportedTrial,
    pub(crate) output: &'a ImportedOutput,
    pub(crate) row: &'a ImportedRow,
}

impl<'a> FoundRow<'a> {
    pub(crate) fn label(&self, name: &str) -> Option<&'a str> {
        self.row.label(name)
    }

    /// True if it has all these labels.
    pub(crate) fn is(&self, labels: &[(&str, &str)]) -> bool {
        labels.iter().all(|(name, value)| self.label(name) == Some(value))
    }

    pub(crate) fn figure(&self, name: &str) -> Option<&'a ImportedFigure> {
        self.row.figure(name)
    }

    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.figure(name).map(|figure| figure.value)
    }

    /// Its file and line.
    pub(crate) fn at(&self) -> (String, u32) {
        let file = self.trial.files.get(self.output.file).map(|file| file.name.clone());
        (file.unwrap_or_default(), self.row.line)
    }
}

/// All rows of a case.
pub(crate) fn rows(case: &ImportedCase) -> impl Iterator<Item = FoundRow<'_>> {
    case.trials.iter().flat_map(move |trial| rows_of_trial(case, trial))
}

/// All rows of a trial.
pub fn rows_of_trial<'a>(case: &'a ImportedCase, trial: &'a ImportedTrial) -> impl Iterator<Item = FoundRow<'a>> + 'a {
    let outputs = trial.outputs.iter();
    outputs.flat_map(move |output| output.rows.iter().map(move |row| FoundRow { case, trial, output, row }))
}

/// The rate of synced writes with a method: `one write` or `two writes`.
pub(crate) fn synced<'a>(
    rows: impl Iterator<Item = FoundRow<'a>>,
    test: &'a str,
) -> impl Iterator<Item = (FoundRow<'a>, &'a str, f64)> {
    rows.filter(move |found| found.label("test") == Some(test))
        .filter_map(|found| Some((found, found.label("method")?, found.value("rate")?)))
        .filter(|(_, _, rate)| *rate > 0.0)
}

/// Transactions per second of a pgbench summary, excluding connection time if both are given.
pub(crate) fn tps<'a>(found: &FoundRow<'a>) -> Option<&'a ImportedFigure> {
    const NAMES: [&str; 3] = ["tps_excluding_connecting", "tps", "tps_including_connecting"];
    let summary = found.output.tool == "pgbench" && found.label("part") == Some("summary");
    NAMES.iter().find_map(|name| found.figure(name)).filter(|_| summary)
}

/// Text of the measurement's length: `60 s`, `2000 operations`.
pub(crate) fn length(found: &FoundRow<'_>) -> Option<String> {
    let heads = found.output.rows.iter().filter(|row| row.labels.is_empty());
    let [seconds, operations] = ["seconds_per_test", "operations_per_test"]
        .map(|name| heads.clone().find_map(|row| row.figure(name)).map(|figure| figure.value));
    let seconds = found.value("duration").or(seconds).map(|seconds| format!("{seconds} s"));
    seconds.or_else(|| Some(format!("{} operations", operations?)))
}
