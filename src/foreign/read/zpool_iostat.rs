//! `zpool iostat` of OpenZFS and of the ZFS in Solaris, illumos and old FreeBSD: pools and, with `-v`, their devices.
//!
//! Suffixes are powers of 1024, those of operations too (`zfs_nicenum` in libzutil). Labels: `report`, `time`, `pool`,
//! `section` (logs, cache, special, dedup), `vdev` (`mirror-0`), `group` (`replacing-1` inside a vdev), `device`. The
//! tree is shown by indentation; if a page lost that, it is rebuilt as far as names and sums allow. Line by line: a row
//! without a value for each column is listed as not read.

#[cfg(test)]
mod tests;
mod tree;

use self::tree::places;
use super::output::{Output, Row, TextLine};
use super::table;
use crate::foreign::clean::number;

const TOOL: &str = "zpool iostat";

/// Reads every table of `zpool iostat` in the text.
pub fn read(lines: &[TextLine<'_>]) -> Vec<Output> {
    let mut reader = ZpoolIostatReader::default();
    lines.iter().for_each(|line| reader.take(*line));
    reader.close();
    reader.outputs
}

/// Name and kind of a figure.
type Column = (String, FigureKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FigureKind {
    Sized(&'static str),
    Wait,
    Unknown,
}

/// Number of columns below a group in the first line of names.
fn group_columns(group: &str) -> usize {
    match group {
        "capacity" | "operations" | "bandwidth" => 2,
        _ if group.ends_with("_wait") || group.ends_with("q_read") || group.ends_with("q_write") => 2,
        _ => 1,
    }
}

/// True for a line between tables.
fn is_rule(words: &[&str]) -> bool {
    words.iter().all(|word| word.len() > 2 && word.chars().all(|c| c == '-'))
}

fn is_bottom(words: &[&str]) -> bool {
    let starts = matches!(words, ["pool" | "vdev", "alloc" | "used", "free" | "avail", "read", "write", ..]);
    starts && words.len() >= 7
}

/// Columns from both lines of names; the first line may be missing.
fn columns(top: Option<&[&str]>, bottom: &[&str]) -> Vec<Column> {
    const USUAL: &str = "capacity operations bandwidth total_wait disk_wait syncq_wait asyncq_wait scrub trim rebuild";
    let groups = top.map_or_else(|| USUAL.split(' ').collect(), <[&str]>::to_vec);
    let mut owners = groups.iter().flat_map(|group| vec![*group; group_columns(group)]);
    bottom[1..].iter().map(|label| column(owners.next().unwrap_or_default(), label)).collect()
}

fn column(group: &str, label: &str) -> Column {
    match (group, label) {
        ("capacity", "alloc" | "used") => ("allocated_bytes".to_owned(), FigureKind::Sized("B")),
        ("capacity", "free" | "avail") => ("free_bytes".to_owned(), FigureKind::Sized("B")),
        ("operations", "read" | "write") => (format!("{label}_ops_per_s"), FigureKind::Sized("ops/s")),
        ("bandwidth", "read" | "write") => (format!("{label}_bytes_per_s"), FigureKind::Sized("B/s")),
        (group, "read" | "write") if group.ends_with("_wait") => (format!("{label}_{group}_us"), FigureKind::Wait),
        (group, "wait") => (format!("{group}_wait_us"), FigureKind::Wait),
        (group, "pend") => (format!("{group}_pending"), FigureKind::Sized("requests")),
        (group, "activ") => (format!("{group}_active"), FigureKind::Sized("requests")),
        (_, label) => (label.to_owned(), FigureKind::Unknown),
    }
}

#[derive(Default)]
struct ZpoolIostatReader<'a> {
    outputs: Vec<Output>,
    current: Option<PoolReport<'a>>,
    called: Option<String>,
    /// Time stamp above a table that has not begun yet.
    time: Option<String>,
    top: Option<Vec<&'a str>>,
}

struct PoolReport<'a> {
    output: Output,
    columns: Vec<Column>,
    called: Option<String>,
    report: u32,
    time: Option<String>,
    /// Pools already seen in the current report.
    pools: Vec<String>,
    /// True if the lines before the first row are missing.
    cut: bool,
    /// Rows since the last separator, placed in the tree together.
    block: Vec<UnplacedRow<'a>>,
}

/// A row before its place is known.
struct UnplacedRow<'a> {
    name: &'a str,
    indent: usize,
    row: Row,
}

impl<'a> ZpoolIostatReader<'a> {
    fn take(&mut self, line: TextLine<'a>) {
        let words = table::words(line.text);
        let command = table::command(line.text, TOOL);
        // Some versions also print a rule before the names.
        if words.is_empty() || self.current.is_none() && is_rule(&words) {
            return;
        }
        if command.is_some() || table::is_prompt(line.text) {
            self.close();
            self.called = command.map(str::to_owned);
        } else if words.starts_with(&["capacity"]) && words.contains(&"operations") {
            self.top = Some(words);
        } else if is_bottom(&words) {
            let columns = columns(self.top.take().as_deref(), &words);
            self.begin(line, columns);
        } else {
            self.inside(line, &words);
        }
    }

    fn inside(&mut self, line: TextLine<'a>, words: &[&'a str]) {
        let time = table::is_time(line.text).then(|| line.text.to_owned());
        let Some(current) = &mut self.current else {
            // The output of a shell line begins at once, or its beginning is missing.
            self.called = self.called.take().filter(|_| time.is_some());
            self.time = time;
            return;
        };
        if is_rule(words) {
            table::extend(&mut current.output, line.number);
            current.end_block();
        } else if time.is_some() {
            current.end_block();
            current.next_report();
            current.time = time;
        } else if table::is_omission(line.text) {
            current.cut |= current.output.rows.is_empty() && current.block.is_empty();
        } else if !current.row(line, words) {
            self.close();
        }
    }

    fn begin(&mut self, line: TextLine<'a>, columns: Vec<Column>) {
        if self.current.as_ref().is_none_or(|current| current.columns != columns) {
            let called = self.called.take();
            self.close();
            let output = table::output(TOOL, line.number);
            let (time, pools, block) = (self.time.take(), Vec::new(), Vec::new());
            self.current = Some(PoolReport { output, columns, called, report: 1, time, pools, cut: false, block });
        }
        let Some(current) = &mut self.current else { return };
        current.end_block();
        current.next_report();
        table::extend(&mut current.output, line.number);
        for (name, _) in current.columns.iter().filter(|(_, kind)| *kind == FigureKind::Unknown) {
            table::unknown_column(&mut current.output, line, name);
        }
    }

    fn close(&mut self) {
        self.called = None;
        let Some(mut current) = self.current.take() else { return };
        current.end_block();
        let since_import = current.called.as_deref().map(|arguments| !table::has_option(arguments, 'y'));
        let since_import = since_import.filter(|since| !(*since && current.cut));
        let mut output = current.output;
        if output.rows.is_empty() && output.unread.is_empty() {
            return;
        }
        for row in output.rows.iter_mut().filter(|row| row.label("report") == Some("1")) {
            row.since_boot = since_import;
        }
        if since_import.is_none() {
            let text = "unknown whether the first report is an average since the pool was imported";
            table::note(&mut output, text);
        }
        self.outputs.push(output);
    }
}

impl<'a> PoolReport<'a> {
    fn next_report(&mut self) {
        if !self.pools.is_empty() {
            self.report += 1;
            self.pools.clear();
            self.time = None;
        }
    }

    /// Reads a row; true if the line is one.
    fn row(&mut self, line: TextLine<'a>, words: &[&'a str]) -> bool {
        // A pool's name may contain blanks.
        let named = words.len().saturating_sub(self.columns.len()).max(1);
        let named = if words[..named].iter().any(|word| is_value(word)) { 1 } else { named };
        let (names, values) = words.split_at(named);
        let mut ends = line.text.match_indices(names[named - 1]).map(|(at, found)| at + found.len());
        let end = ends.find(|end| line.text[..*end].split_whitespace().count() == named);
        let name = line.text.get(..end.unwrap_or_default()).map_or(words[0], str::trim_start);
        let mut row = table::row(Vec::new(), line.number);
        let is_section = tree::is_section(name) && values.is_empty();
        let numbers = values.iter().filter(|word| is_value(word)).count();
        if !is_section && (values.len() < 2 || numbers * 2 < values.len() || is_value(name) && number(name).is_none()) {
            return false;
        }
        table::extend(&mut self.output, line.number);
        if !is_section && values.len() != self.columns.len() {
            let columns = self.columns.len();
            self.output.unread.push(table::unread(line, format!("a name and {columns} values, one for each column")));
            return true;
        }
        for ((name, kind), word) in self.columns.iter().zip(values) {
            let (unit, value) = match *kind {
                FigureKind::Sized(unit) => (unit, table::bytes(word)),
                FigureKind::Wait => ("us", table::span_us(word)),
                FigureKind::Unknown => continue,
            };
            match value {
                Some(value) => row.figures.push(table::figure(name, unit, value, word, line.number)),
                None if *word == "-" => {}
                None => {
                    self.output.unread.push(table::unread(line, format!("a number for {name}, not `{word}`")));
                }
            }
        }
        row.absent = row.figures.is_empty().then(|| "a dash in each column".to_owned());
        self.block.push(UnplacedRow { name, indent: line.indent, row });
        true
    }

    /// Places the rows since the last separator in the tree.
    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        let shown: Vec<(usize, &str)> = block.iter().map(|read| (read.indent, read.name)).collect();
        let verbose = self.called.as_deref().map(|arguments| table::has_option(arguments, 'v'));
        let known = places(&shown);
        let is_known = known.is_some();
        let (places, note) = known.map_or_else(|| tree::guessed(&block, verbose), |places| (places, None));
        note.into_iter().filter(|_| !is_known).for_each(|note| table::note(&mut self.output, note));
        for (read, place) in block.into_iter().zip(places) {
            let is_pool = place.vdev.is_none() && place.device.is_none();
            let pool = place.pool.clone();
            let Some(place) = place.labels() else { continue };
            if is_pool && self.pools.contains(&pool) {
                self.next_report();
            }
            if is_pool {
                self.pools.push(pool);
            }
            let mut labels = vec![("report", self.report.to_string())];
            labels.extend(self.time.clone().map(|time| ("time", time)));
            labels.extend(place);
            self.output.rows.push(Row { labels: table::owned(labels), ..read.row });
        }
    }
}

/// True if a word is a table value: a number in any format, or a dash.
fn is_value(word: &str) -> bool {
    word == "-" || table::bytes(word).is_some() || table::span_us(word).is_some()
}
