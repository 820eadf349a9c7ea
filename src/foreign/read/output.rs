//! What a reader of foreign text finds: outputs of tools, each with its rows, each row with labels and figures, each
//! figure as it stands in the text, with its unit and its line. And what it could not read, never dropped.
//!
//! Every foreign parser has the same two functions: `looks_like(lines) -> bool`, cheap, for telling kinds apart, and
//! `read(lines) -> Vec<Output>`, which goes through the whole text and takes what is its own. Text comes as the web
//! gives it, so nothing here depends on columns: `web` undoes what pages do to text, and says where each line
//! stood.

/// One line of the text as it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its number in the file, from 1.
    pub number: u32,
    /// The line without its end, its margin and what a page put around it.
    pub text: &'a str,
    /// How many columns stood before that. Pages change it: it may tell, but nothing may depend on it.
    pub indent: usize,
}

/// One output of one tool: from its heading to its last line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// Which tool printed it: `pg_test_fsync`, `iostat -x`, `zpool iostat`.
    pub tool: &'static str,
    /// Version, as far as the text tells it: `9.3 or 9.4`, `15.3`.
    pub version: Option<String>,
    /// First and last line that belong to it.
    pub lines: (u32, u32),
    /// Facts without a number that count for the whole output: `("query mode", "prepared")`.
    pub facts: Vec<(String, String)>,
    /// Its rows in order.
    pub rows: Vec<Row>,
    /// What a reader should know: `averages since boot`, `cut off at its end`.
    pub notes: Vec<String>,
    /// Lines that stand inside it and could not be read.
    pub unread: Vec<Unread>,
}

/// One row: what it is about and its numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What tells it apart, outermost first: `("test", "one 8kB write"), ("method", "fdatasync")`.
    pub labels: Vec<(&'static str, String)>,
    /// Its numbers.
    pub figures: Vec<Figure>,
    /// Why it has none, where the tool says so: `n/a: not built in on this platform`.
    pub absent: Option<String>,
    /// Whether it is an average since boot (or import of the pool) and not over an interval; `None` where the text does
    /// not tell.
    pub since_boot: Option<bool>,
    /// Where it begins.
    pub line: u32,
}

impl Default for Row {
    /// A row of a tool that prints no averages since boot.
    fn default() -> Row {
        Row { labels: Vec::new(), figures: Vec::new(), absent: None, since_boot: Some(false), line: 0 }
    }
}

/// A number as a tool printed it.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it is, in this program's words: `rate`, `latency_mean`, `w_per_s`. The same for every version of the tool.
    pub name: String,
    /// Its unit after conversion: `ops/s`, `us`, `B/s`, `%`, `count`. Empty for a bare number.
    pub unit: &'static str,
    /// Its value in that unit.
    pub value: f64,
    /// As it stands in the text: `7.31K`, `3777,334`.
    pub text: String,
    /// Where.
    pub line: u32,
}

/// A line that is there and could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Its number.
    pub line: u32,
    /// The line, shortened to 200 characters.
    pub text: String,
    /// What was wanted there.
    pub wanted: String,
}
