//! `zpool iostat` of OpenZFS and of the ZFS in Solaris, illumos and old FreeBSD: pools and, with `-v`, their devices.
//!
//! | columns | figures | unit |
//! |---|---|---|
//! | capacity: alloc free (used avail) | `allocated_bytes`, `free_bytes` | B |
//! | operations: read write | `read_ops_per_s`, `write_ops_per_s` | ops/s |
//! | bandwidth: read write | `read_bytes_per_s`, `write_bytes_per_s` | B/s |
//! | total_wait, disk_wait, syncq_wait, asyncq_wait (`-l`) | `read_total_wait_us`, `write_total_wait_us`, .. | us |
//! | scrub, trim, rebuild wait (`-l`) | `scrub_wait_us`, `trim_wait_us`, `rebuild_wait_us` | us |
//! | syncq_read and others: pend activ (`-q`) | `syncq_read_pending`, `syncq_read_active`, .. | requests |
//!
//! Suffixes are powers of 1024, those of operations too (`zfs_nicenum` in libzutil). Labels: `report`, `time`, `pool`,
//! `section` (logs, cache, special, dedup), `vdev` (`mirror-0`), `group` (`replacing-1` inside a vdev), `device`. The tree
//! stands in the indentation; where a page lost that, it is rebuilt from names and from who has a capacity, which the
//! members of a mirror or raidz have not.

mod tree;

use self::tree::{Tree, places};
use super::output::{Line, Output, Row};
use super::table;
use crate::foreign::clean as web;

const TOOL: &str = "zpool iostat";

/// Whether the text holds a table of `zpool iostat`.
#[must_use]
pub fn looks_like(lines: &[Line<'_>]) -> bool {
    let called = |line: &Line<'_>| table::command(line.text, TOOL).is_some_and(|it| table::has_option(it, 'H'));
    lines.iter().any(|line| is_bottom(&table::words(line.text)) || called(line))
}

/// A form of `zpool iostat` that the text holds and that is not read: histograms.
#[must_use]
pub fn form_not_read(lines: &[Line<'_>]) -> Option<&'static str> {
    lines.iter().find_map(|line| match table::words(line.text).as_slice() {
        ["latency", "read", "write", ..] => Some("zpool iostat -w"),
        ["req_size", "ind", "agg", ..] => Some("zpool iostat -r"),
        _ => None,
    })
}

/// Reads every table of `zpool iostat` in the text.
#[must_use]
pub fn read(lines: &[Line<'_>]) -> Vec<Output> {
    let mut reader = Reader::default();
    let mut at = 0;
    while at < lines.len() {
        at += reader.take(lines, at);
    }
    reader.close();
    reader.outputs
}

/// What a column is.
#[derive(Debug, Clone, PartialEq)]
struct Column {
    name: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bytes,
    BytesPerSecond,
    OpsPerSecond,
    Wait,
    Queue,
    Unknown,
}

/// Groups of the first line of names, and how many columns each has.
fn group_columns(group: &str) -> Option<usize> {
    match group {
        "capacity" | "operations" | "bandwidth" => Some(2),
        "scrub" | "trim" | "rebuild" => Some(1),
        _ if group.ends_with("_wait") || group.ends_with("q_read") || group.ends_with("q_write") => Some(2),
        _ => None,
    }
}

/// Whether it is a line between tables.
fn is_rule(words: &[&str]) -> bool {
    words.iter().all(|word| word.len() > 2 && word.chars().all(|c| c == '-'))
}

fn is_top(words: &[&str]) -> bool {
    words.first() == Some(&"capacity") && words.contains(&"operations")
}

fn is_bottom(words: &[&str]) -> bool {
    let starts = matches!(words, ["pool" | "vdev", "alloc" | "used", "free" | "avail", "read", "write", ..]);
    starts && words.len() >= 7
}

/// The columns under both lines of names; the first line may be missing.
fn columns(top: Option<&[&str]>, bottom: &[&str]) -> Vec<Column> {
    const USUAL: [&str; 10] = [
        "capacity",
        "operations",
        "bandwidth",
        "total_wait",
        "disk_wait",
        "syncq_wait",
        "asyncq_wait",
        "scrub",
        "trim",
        "rebuild",
    ];
    let groups = top.unwrap_or(&USUAL);
    let mut owners = groups.iter().flat_map(|group| vec![*group; group_columns(group).unwrap_or(1)]);
    bottom[1..].iter().map(|label| column(owners.next().unwrap_or_default(), label)).collect()
}

fn column(group: &str, label: &str) -> Column {
    let (name, kind) = match (group, label) {
        ("capacity", "alloc" | "used") => ("allocated_bytes".to_owned(), Kind::Bytes),
        ("capacity", "free" | "avail") => ("free_bytes".to_owned(), Kind::Bytes),
        ("operations", "read" | "write") => (format!("{label}_ops_per_s"), Kind::OpsPerSecond),
        ("bandwidth", "read" | "write") => (format!("{label}_bytes_per_s"), Kind::BytesPerSecond),
        (group, "read" | "write") if group.ends_with("_wait") => (format!("{label}_{group}_us"), Kind::Wait),
        (group, "wait") => (format!("{group}_wait_us"), Kind::Wait),
        (group, "pend") => (format!("{group}_pending"), Kind::Queue),
        (group, "activ") => (format!("{group}_active"), Kind::Queue),
        (_, label) => (label.to_owned(), Kind::Unknown),
    };
    Column { name, kind }
}

/// The columns of `-H`, which prints no names; `None` where the options do not tell them.
fn columns_of_options(arguments: &str, words: usize) -> Option<Vec<Column>> {
    let latency = table::has_option(arguments, 'l');
    let plain = ["capacity", "operations", "bandwidth"];
    let waits = ["total_wait", "disk_wait", "syncq_wait", "asyncq_wait", "scrub", "trim", "rebuild"];
    let groups = || plain.iter().chain(waits.iter().filter(|_| latency));
    let label = |group: &str, index: usize| match (group, index) {
        ("capacity", 0) => "alloc",
        ("capacity", _) => "free",
        ("scrub" | "trim" | "rebuild", _) => "wait",
        (_, 0) => "read",
        _ => "write",
    };
    let all: Vec<Column> = groups()
        .flat_map(|group| (0..group_columns(group).unwrap_or(1)).map(move |index| column(group, label(group, index))))
        .collect();
    let least = if latency { 14 } else { 6 };
    let fits = words > least && words <= all.len() + 1 && !table::has_option(arguments, 'q');
    fits.then(|| all[..words - 1].to_vec())
}

#[derive(Default)]
struct Reader<'a> {
    outputs: Vec<Output>,
    current: Option<Current<'a>>,
    called: Option<String>,
    /// The time stamp over a table that has not begun yet.
    time: Option<String>,
    top: Option<Vec<&'a str>>,
}

struct Current<'a> {
    output: Output,
    columns: Vec<Column>,
    called: Option<String>,
    report: u32,
    time: Option<String>,
    /// Pools that the present report has shown.
    pools: Vec<String>,
    /// Whether somebody left out what stood before the first row.
    cut: bool,
    /// Rows since the last separator, which are placed in the tree together.
    block: Vec<Read<'a>>,
}

/// A row before its place is known.
struct Read<'a> {
    name: &'a str,
    indent: usize,
    row: Row,
    /// Whether any value but a dash stood in it.
    has_capacity: bool,
}

impl<'a> Reader<'a> {
    fn take(&mut self, lines: &[Line<'a>], at: usize) -> usize {
        let line = lines[at];
        let words = table::words(line.text);
        // Some versions print a rule before the names too.
        if words.is_empty() || self.current.is_none() && is_rule(&words) {
            return 1;
        }
        if let Some(arguments) = table::command(line.text, TOOL) {
            self.close();
            self.called = Some(arguments.to_owned());
            return 1;
        }
        if table::is_prompt(line.text) {
            self.close();
            self.called = None;
            return 1;
        }
        if is_top(&words) {
            self.top = Some(words);
            return 1;
        }
        if is_bottom(&words) {
            let columns = columns(self.top.take().as_deref(), &words);
            self.begin(line, columns);
            return 1;
        }
        let time = table::is_time(line.text).then(|| line.text.to_owned());
        if self.current.is_none() {
            if time.is_some() {
                self.time = time;
                return 1;
            }
            let asked = self.called.as_deref().filter(|arguments| table::has_option(arguments, 'H'));
            let Some(columns) = asked.and_then(|arguments| columns_of_options(arguments, words.len())) else {
                // What a shell line called begins at once, or its beginning is not here.
                (self.called, self.time) = (None, None);
                return 1;
            };
            let verbose = asked.is_some_and(|arguments| table::has_option(arguments, 'v'));
            self.begin(line, columns);
            let output = self.current.as_mut().map(|current| &mut current.output).filter(|_| verbose);
            if let Some(output) = output {
                table::note(
                    output,
                    "with -H nothing parts pools from devices: all rows are taken to be of the first pool",
                );
            }
        }
        let Some(current) = &mut self.current else { return 1 };
        current.cut |= table::is_omission(line.text) && current.output.rows.is_empty() && current.block.is_empty();
        if is_rule(&words) {
            table::extend(&mut current.output, line.number);
            current.end_block();
            return 1;
        }
        if time.is_some() {
            current.end_block();
            current.next_report();
            current.time = time;
            return 1;
        }
        let used = current.row(lines, at);
        if used == 0 && !table::is_omission(line.text) {
            self.close();
        }
        used.max(1)
    }

    fn begin(&mut self, line: Line<'a>, columns: Vec<Column>) {
        let mut current = match self.current.take() {
            Some(current) if current.columns == columns => current,
            other => {
                self.current = other;
                self.close();
                let output = Output { tool: TOOL, lines: (line.number, line.number), ..Output::default() };
                let (time, pools, block) = (self.time.take(), Vec::new(), Vec::new());
                Current { output, columns, called: self.called.take(), report: 1, time, pools, cut: false, block }
            }
        };
        current.end_block();
        current.next_report();
        table::extend(&mut current.output, line.number);
        for column in current.columns.iter().filter(|column| column.kind == Kind::Unknown) {
            table::unknown_column(&mut current.output, line, &column.name);
        }
        self.current = Some(current);
    }

    fn close(&mut self) {
        let Some(mut current) = self.current.take() else { return };
        current.end_block();
        let since_import = current.called.as_deref().map(|arguments| !table::has_option(arguments, 'y'));
        let mut output = current.output;
        if output.rows.is_empty() && output.unread.is_empty() {
            return;
        }
        let since_import = since_import.filter(|since| !(*since && current.cut));
        let first = |row: &&mut Row| row.labels.iter().any(|(name, value)| *name == "report" && value == "1");
        output.rows.iter_mut().filter(first).for_each(|row| row.since_boot = since_import);
        if since_import.is_none() {
            let text = "whether the first report is an average since the pool was imported cannot be known";
            table::note(&mut output, text);
        }
        self.outputs.push(output);
    }
}

impl<'a> Current<'a> {
    fn next_report(&mut self) {
        if !self.pools.is_empty() {
            self.report += 1;
            self.pools.clear();
            self.time = None;
        }
    }

    /// Reads the row at `at`; 0 when it is none.
    fn row(&mut self, lines: &[Line<'a>], at: usize) -> usize {
        let line = lines[at];
        let wanted = self.columns.len() + 1;
        let (words, used) = table::wrapped(lines, at, wanted, is_value);
        let Some(&(_, name)) = words.first() else { return 0 };
        let section = tree::is_section(name);
        if section && words.len() == 1 {
            let row = table::row(Vec::new(), line.number);
            self.block.push(Read { name, indent: line.indent, row, has_capacity: false });
            table::extend(&mut self.output, line.number);
            return used;
        }
        let values = words[1..].iter().filter(|(_, word)| is_value(word)).count();
        if words.len() < 3 || values * 2 < words.len() - 1 || is_value(name) && web::number(name).is_none() {
            return 0;
        }
        lines[at..at + used].iter().for_each(|line| table::extend(&mut self.output, line.number));
        if words.len() != wanted {
            let columns = self.columns.len();
            self.output.unread.push(table::unread(line, format!("a name and {columns} values, one for each column")));
            return used;
        }
        let mut row = table::row(Vec::new(), line.number);
        let has_capacity = words[1].1 != "-" && !section;
        for (column, (number, word)) in self.columns.iter().zip(&words[1..]) {
            let (unit, value) = match column.kind {
                Kind::Bytes => ("B", table::bytes(word)),
                Kind::BytesPerSecond => ("B/s", table::bytes(word)),
                Kind::OpsPerSecond => ("ops/s", table::bytes(word)),
                Kind::Wait => ("us", table::span_us(word)),
                Kind::Queue => ("requests", table::bytes(word)),
                Kind::Unknown => continue,
            };
            match value {
                Some(value) => row.figures.push(table::figure(&column.name, unit, value, word, *number)),
                None if *word == "-" => {}
                None => {
                    self.output.unread.push(table::unread(line, format!("a number for {}, not `{word}`", column.name)));
                }
            }
        }
        row.absent = row.figures.is_empty().then(|| "a dash in each column".to_owned());
        self.block.push(Read { name, indent: line.indent, row, has_capacity });
        used
    }

    /// Puts the rows since the last separator into the tree.
    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        let arguments = self.called.as_deref();
        let verbose = arguments.map(|arguments| table::has_option(arguments, 'v'));
        let shown: Vec<(usize, &str)> = block.iter().map(|read| (read.indent, read.name)).collect();
        let mut told = places(&shown).map(Vec::into_iter);
        let mut tree = Tree::of(&block, verbose);
        if let Some(text) = tree.note.take().filter(|_| told.is_none()) {
            table::note(&mut self.output, text);
        }
        for read in block {
            let indented = told.as_mut().and_then(Iterator::next);
            let place = indented.unwrap_or_else(|| tree.place(read.name, read.has_capacity));
            let is_pool = place.vdev.is_none() && place.device.is_none();
            let pool = place.pool.clone();
            let Some(place) = place.labels() else { continue };
            if is_pool && self.pools.contains(&pool) {
                self.next_report();
            }
            if is_pool || self.pools.is_empty() {
                self.pools.push(pool.clone());
            }
            let mut labels = vec![("report", self.report.to_string())];
            labels.extend(self.time.clone().map(|time| ("time", time)));
            labels.extend(place);
            self.output.rows.push(Row { labels, ..read.row });
        }
        for text in tree.notes {
            table::note(&mut self.output, text);
        }
    }
}

fn is_value(word: &str) -> bool {
    word == "-" || table::bytes(word).or_else(|| table::span_us(word)).is_some()
}

#[cfg(test)]
mod tests;
