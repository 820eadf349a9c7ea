//! `import.json`: results read from other people's output, each number as printed. No rates are computed, no units
//! guessed; missing facts are listed as unknown.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of `import.json`. 1: the first.
pub const FORMAT: u32 = 1;

/// One import: a publication of the shelf, or the files of one `pgstrata import`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that read it.
    pub tool_version: String,
    /// Import time, RFC 3339; empty for the shelf, which is read anew each time.
    pub imported: String,
    /// Difference between the cases, from the manifest; empty without one.
    pub varied: String,
    /// Measurement procedure, from the manifest.
    pub procedure: String,
    /// Source of the measurement.
    pub origin: Origin,
    /// The cases that were compared.
    pub cases: Vec<ImportedCase>,
    /// Caveats for the whole import.
    pub caveats: Vec<String>,
    /// Facts needed to judge it that are not reported: `kernel`, `mount options`.
    pub unknown: Vec<String>,
}

/// Source of a measurement, as far as stated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Origin {
    /// Title of the publication.
    pub title: Option<String>,
    /// Author, as published.
    pub author: Option<String>,
    /// Date of publication.
    pub published: Option<String>,
    /// Date of measurement, if known.
    pub measured: Option<String>,
    /// Language of the publication.
    pub language: Option<String>,
    /// Machine: CPUs, memory.
    pub machine: Option<String>,
    /// Devices, controller, RAID.
    pub storage: Option<String>,
    /// Operating system with its version.
    pub system: Option<String>,
    /// PostgreSQL's version.
    pub postgresql: Option<String>,
}

/// One case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedCase {
    /// Its name, unique within the import: `sync-standard`.
    pub name: String,
    /// Known facts by dotted key: `stack.filesystem` -> `zfs`, `zfs.sync` -> `disabled`. From the publication's
    /// description or `--set`.
    pub facts: BTreeMap<String, String>,
    /// Its trials: repetitions, each with the files of one run.
    pub trials: Vec<ImportedTrial>,
    /// Caveats for this case.
    pub caveats: Vec<String>,
}

/// One trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedTrial {
    /// The files that it was read from.
    pub files: Vec<ImportedFile>,
    /// Tool outputs found in them, in order.
    pub outputs: Vec<ImportedOutput>,
    /// A pgbench log, read into histograms.
    pub log: Option<ImportedLog>,
}

/// A file that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFile {
    /// Its name as given; `-` for standard input.
    pub name: String,
    /// Path of its copy below `raw/`; `None` if none was kept.
    pub raw: Option<String>,
    /// SHA-256 of its bytes as given, hex.
    pub sha256: String,
    /// Its size as given.
    pub bytes: u64,
    /// Compression: `gzip`, `xz`, `zstd`; `None` for plain files.
    pub packed: Option<String>,
    /// Text encoding, if not UTF-8: `UTF-16LE`, `Latin-1`.
    pub encoding: Option<String>,
    /// Facts in its text outside the outputs, by dotted key: `host.system` -> `Linux 5.10.0-8`, `measured`,
    /// `postgresql.version`.
    pub facts: Vec<(String, String)>,
    /// Lines that look like figures but belong to no output, as first and last line of each run.
    pub lines_of_no_output: Vec<(u32, u32)>,
}

/// One output of one tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedOutput {
    /// Index into the trial's files.
    pub file: usize,
    /// The tool: `pg_test_fsync`, `iostat -x`.
    pub tool: String,
    /// Its version, if stated.
    pub version: Option<String>,
    /// First and last line.
    pub lines: (u32, u32),
    /// Facts without a number.
    pub facts: Vec<(String, String)>,
    /// Its rows in order.
    pub rows: Vec<ImportedRow>,
    /// Remarks for the reader.
    pub notes: Vec<String>,
    /// Lines inside it that could not be read.
    pub unread: Vec<Unread>,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Its number.
    pub line: u32,
    /// The line, shortened to 200 characters.
    pub text: String,
    /// Expected content.
    pub wanted: String,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedRow {
    /// Labels that identify it, outermost first.
    pub labels: Vec<(String, String)>,
    /// Its numbers.
    pub figures: Vec<ImportedFigure>,
    /// Reason for having no numbers, if the tool gives one.
    pub absent: Option<String>,
    /// True for an average since boot; `None` if the text does not say.
    pub since_boot: Option<bool>,
    /// First line.
    pub line: u32,
}

impl Default for ImportedRow {
    /// A row that is not an average since boot.
    fn default() -> ImportedRow {
        ImportedRow { labels: Vec::new(), figures: Vec::new(), absent: None, since_boot: Some(false), line: 0 }
    }
}

impl ImportedRow {
    /// Label of this name.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Figure of this name.
    pub fn figure(&self, name: &str) -> Option<&ImportedFigure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

impl ImportedOutput {
    /// Value of the fact of this name.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl ImportedCase {
    /// Value of the fact of this key.
    pub fn fact(&self, key: &str) -> Option<&str> {
        self.facts.get(key).map(String::as_str)
    }
}

/// One number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedFigure {
    /// Name of the quantity.
    pub name: String,
    /// Its unit; empty for a bare number.
    pub unit: String,
    /// Its value in that unit.
    pub value: f64,
    /// Original text.
    pub text: String,
    /// Line number.
    pub line: u32,
}

/// Many durations from a log: exact except for their distribution.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedTimes {
    /// Number of durations.
    pub count: u64,
    /// Sum, microseconds.
    pub sum_us: u64,
    /// Longest, microseconds.
    pub most_us: u64,
    /// (microseconds, count), ascending; rounded up by less than 0.1 %, but never beyond the longest. Empty if only
    /// sums are known.
    pub steps: Vec<(u64, u64)>,
}

/// A pgbench log, summarized in constant memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedLog {
    /// Transactions completed, whether or not late.
    pub done: u64,
    /// Skipped because already late.
    pub skipped: u64,
    /// Failed; `None` if the log does not say.
    pub failed: Option<u64>,
    /// Transactions retried, done or failed, and total retries; `None` if the log has no such column.
    pub retried: Option<(u64, u64)>,
    /// Wall clock from the end of the first transaction to that of the last, or from the start of the first interval to
    /// the end of the last (its start, if there is only one), microseconds since 1970; `None` if the log has no times.
    pub span_us: Option<(u64, u64)>,
    /// Latencies of the transactions done.
    pub latency: ImportedTimes,
    /// Delays of the starts of completed transactions; `None` if the log has no such column.
    pub lag: Option<ImportedTimes>,
    /// True if it has one more column, which may be the lag or the retries.
    #[serde(default)]
    pub column_untold: bool,
    /// Lines that could not be read.
    pub lines_unread: u64,
}
