//! `import.json`: what was read from other people's output, each number as it stood there. No rate is computed, no unit
//! is guessed; what the text does not tell is listed as unknown.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of `import.json`. 1: the first.
pub const FORMAT: u32 = 1;

/// Everything that was imported together: a publication of the shelf, or the files of one `pgstrata import`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that read it.
    pub tool_version: String,
    /// When it was read, RFC 3339; empty for the shelf, which is read anew each time.
    pub imported: String,
    /// What varied between the cases, as the manifest tells it; empty without one.
    pub varied: String,
    /// How it was measured, as the manifest tells it.
    pub procedure: String,
    /// Where it comes from.
    pub origin: Origin,
    /// What was measured, one for each point that was compared.
    pub cases: Vec<ImportedCase>,
    /// What a reader should know of all of it.
    pub caveats: Vec<String>,
    /// What would be needed to judge it and is not reported, in words: `kernel`, `mount options`.
    pub unknown: Vec<String>,
}

/// Where a measurement comes from, as far as it tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Origin {
    /// Title of the publication.
    pub title: Option<String>,
    /// Author, as published.
    pub author: Option<String>,
    /// When it was published.
    pub published: Option<String>,
    /// When it was measured, as far as known.
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
    /// What is known of it, by dotted key: `stack.filesystem` -> `zfs`, `zfs.sync` -> `disabled`. From the publication's
    /// description or `--set`.
    pub facts: BTreeMap<String, String>,
    /// Its trials: repetitions, each with the files of one run.
    pub trials: Vec<ImportedTrial>,
    /// What a reader should know of it.
    pub caveats: Vec<String>,
}

/// One trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedTrial {
    /// The files that it was read from.
    pub files: Vec<ImportedFile>,
    /// What was found in them, in order.
    pub outputs: Vec<ImportedOutput>,
    /// A pgbench log, read to histograms.
    pub log: Option<ImportedLog>,
}

/// A file that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFile {
    /// Its name as given; `-` for standard input.
    pub name: String,
    /// Where its copy lies below `raw/`; `None` where none was kept.
    pub raw: Option<String>,
    /// SHA-256 of its bytes as given, hex.
    pub sha256: String,
    /// Its size as given.
    pub bytes: u64,
    /// How it was packed: `gzip`, `xz`, `zstd`; `None` for plain files.
    pub packed: Option<String>,
    /// How its text was encoded, where that is not UTF-8: `UTF-16LE`, `Latin-1`.
    pub encoding: Option<String>,
    /// What its lines tell besides the outputs, by dotted key: `host.system` -> `Linux 5.10.0-8`, `measured`,
    /// `postgresql.version`.
    pub facts: Vec<(String, String)>,
    /// Lines that look like figures and belong to no output, as first and last line of each run.
    pub lines_of_no_output: Vec<(u32, u32)>,
}

/// One output of one tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedOutput {
    /// Which file, as an index into the trial's.
    pub file: usize,
    /// Which tool printed it: `pg_test_fsync`, `iostat -x`.
    pub tool: String,
    /// Its version, as far as the text tells it.
    pub version: Option<String>,
    /// First and last line.
    pub lines: (u32, u32),
    /// Facts without a number.
    pub facts: Vec<(String, String)>,
    /// Its rows in order.
    pub rows: Vec<ImportedRow>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Lines that stand inside it and could not be read.
    pub unread: Vec<Unread>,
}

/// A line that is there and could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Its number.
    pub line: u32,
    /// The line, shortened to 200 characters.
    pub text: String,
    /// What was wanted there.
    pub wanted: String,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedRow {
    /// What tells it apart, outermost first.
    pub labels: Vec<(String, String)>,
    /// Its numbers.
    pub figures: Vec<ImportedFigure>,
    /// Why it has none, where the tool says so.
    pub absent: Option<String>,
    /// Whether it is an average since boot; `None` where the text does not tell.
    pub since_boot: Option<bool>,
    /// Where it begins.
    pub line: u32,
}

impl Default for ImportedRow {
    /// A row that is no average since boot.
    fn default() -> ImportedRow {
        ImportedRow { labels: Vec::new(), figures: Vec::new(), absent: None, since_boot: Some(false), line: 0 }
    }
}

impl ImportedRow {
    /// The label of this name.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The number of this name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&ImportedFigure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

impl ImportedOutput {
    /// The fact of this name.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl ImportedCase {
    /// The fact of this key.
    #[must_use]
    pub fn fact(&self, key: &str) -> Option<&str> {
        self.facts.get(key).map(String::as_str)
    }
}

/// One number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedFigure {
    /// What it is.
    pub name: String,
    /// Its unit; empty for a bare number.
    pub unit: String,
    /// Its value in that unit.
    pub value: f64,
    /// As it stands in the text.
    pub text: String,
    /// Where.
    pub line: u32,
}

/// Many times of a log: exact but for their distribution.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedTimes {
    /// How many.
    pub count: u64,
    /// All together, microseconds.
    pub sum_us: u64,
    /// The longest, microseconds.
    pub most_us: u64,
    /// (microseconds, how many), ascending; rounded up by less than 0.1 %, but to no more than the longest. Empty where only
    /// sums are known.
    pub steps: Vec<(u64, u64)>,
}

/// A pgbench log, in constant memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedLog {
    /// Transactions done, skipped, failed.
    pub done: u64,
    /// Skipped, being already late.
    pub skipped: u64,
    /// Failed; `None` where the log does not tell.
    pub failed: Option<u64>,
    /// Transactions, done or failed, that were tried again, and how often in all; `None` where the log has no such column.
    pub retried: Option<(u64, u64)>,
    /// Wall clock of the first and the last transaction's end, or from the begin of the first interval to the end of the last
    /// (its begin, where there is one alone), microseconds since 1970; `None` where the log has none.
    pub span_us: Option<(u64, u64)>,
    /// Latencies of the transactions done.
    pub latency: ImportedTimes,
    /// By how much the transactions done began later than they were due; `None` where the log has no such column.
    pub lag: Option<ImportedTimes>,
    /// Whether it has one further column of which its lines do not tell whether it is the lag or the retries.
    #[serde(default)]
    pub column_untold: bool,
    /// Lines that could not be read.
    pub lines_unread: u64,
}
