//! Output of `pg_test_fsync` in English, versions 9.1 to 18 (formats: the program's source).
//!
//! Line by line: a heading, then rows of a name and `N ops/sec`, since 9.3 with `N usecs/op`. A row counts only if
//! complete, under a complete heading, with a time consistent with its rate; any other line with a number is listed as
//! not read.

#[cfg(test)]
mod tests;

use super::output::{Output, Row, TextLine};
use super::table::{self, extend, figure};
use crate::foreign::clean::{is_digits, number, prompt};

/// Methods in the order used by each of the first two tests.
const METHODS: [&str; 5] = ["open_datasync", "fdatasync", "fsync", "fsync_writethrough", "open_sync"];
/// Rows of the two method tests, of the size test, the descriptor test, and without sync.
const ALL_ROWS: usize = 2 * METHODS.len() + 8;
/// The size test writes this many bytes in total, in as many writes as needed.
const ALL_WRITES: u64 = 16 * 1024;

/// Reads every output in a text, in order.
pub fn read(lines: &[TextLine<'_>]) -> Vec<Output> {
    let mut reading = PgTestFsyncReader::default();
    for line in lines {
        reading.line(*line);
    }
    reading.close();
    reading.outputs
}

const ONE_WRITE: &str = "one write";
const TWO_WRITES: &str = "two writes";
const SIZES: &str = "open_sync sizes";
const DESCRIPTOR: &str = "descriptor";
const NOT_SYNCED: &str = "not synced";

/// A test, and its write size if the heading states it.
type Heading = (&'static str, Option<u64>);

/// `8kB` in bytes.
fn kilobytes(word: &str) -> Option<u64> {
    word.strip_suffix("kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Parses the heading of a table.
fn heading(words: &[&str]) -> Option<Heading> {
    let (test, size) = match words {
        ["Compare", "file", "sync", "methods", "using", "one", size, "write:"] => (ONE_WRITE, size),
        ["Compare", "file", "sync", "methods", "using", "two", size, "writes:"] => (TWO_WRITES, size),
        ["Non-Sync'ed" | "Non-sync'ed", size, "writes:"] => (NOT_SYNCED, size),
        ["Compare", "open_sync", "with", "different", "write", "sizes:"] => return Some((SIZES, None)),
        ["Test", "if", "fsync", "on", "non-write", "file", "descriptor", "is", "honored:"] => {
            return Some((DESCRIPTOR, None));
        }
        _ => return None,
    };
    Some((test, Some(kilobytes(size)?)))
}

/// A row as printed.
struct PrintedRow<'a> {
    /// `None` for a method: the heading determines the test.
    test: Option<&'static str>,
    method: String,
    /// Bytes per write, in a row of the size test.
    write_bytes: Option<u64>,
    /// Operations per second and optionally microseconds per operation, as printed; else the reason why there is no
    /// figure.
    value: Result<(&'a str, Option<&'a str>), &'static str>,
}

impl<'a> PrintedRow<'a> {
    fn of(words: &[&'a str]) -> Option<PrintedRow<'a>> {
        let (name, value) = match words {
            [name @ .., rate, "ops/sec", us, "usecs/op"] => (name, Ok((*rate, Some(*us)))),
            [name @ .., rate, "ops/sec"] => (name, Ok((*rate, None))),
            [name @ .., "n/a"] => (name, Err("n/a: not built in on this platform")),
            [name @ .., "n/a*"] => {
                (name, Err("n/a*: this file system with its mount options does not take direct I/O"))
            }
            _ => return None,
        };
        let (test, method, write_bytes) = match name {
            [method] if METHODS.contains(method) => (None, (*method).to_owned(), None),
            ["write"] => (Some(NOT_SYNCED), "write".to_owned(), None),
            ["write,", "fsync,", "close"] | ["write,", "close,", "fsync"] => (Some(DESCRIPTOR), name.join(" "), None),
            // Version 9.1 does not print the number of writes.
            [size, "open_sync", "write" | "writes"] => (Some(SIZES), "open_sync".to_owned(), Some(kilobytes(size)?)),
            [writes, "*", size, "open_sync", "write" | "writes"] => {
                let bytes = kilobytes(size)?;
                // If size times count is not the whole, a digit is missing.
                (writes.parse::<u64>().ok()?.checked_mul(bytes)? == ALL_WRITES).then_some(())?;
                (Some(SIZES), "open_sync".to_owned(), Some(bytes))
            }
            _ => return None,
        };
        Some(PrintedRow { test, method, write_bytes, value })
    }
}

/// Rate and time, if both have the program's format and are inverses: the rate is rounded to a thousandth, the time to
/// an integer.
fn rate_and_time(rate: &str, time: Option<&str>) -> Option<(f64, Option<f64>)> {
    const RATE_ROUNDING: f64 = 0.0005;
    const TIME_ROUNDING: f64 = 0.51;
    // The program prints three decimals and no thousands separators.
    let plain = match rate.split_once(',') {
        Some((whole, decimals)) if !decimals.contains([',', '.']) => format!("{whole}.{decimals}"),
        _ => rate.to_owned(),
    };
    let (whole, decimals) = plain.split_once('.')?;
    let is_printed = !whole.is_empty() && is_digits(whole) && is_digits(decimals) && decimals.len() == 3;
    let value = plain.parse::<f64>().ok().filter(|_| is_printed)?;
    let Some(time) = time else {
        // A lone comma before three digits may be a thousands separator, and there is no time to decide.
        return number(rate).map(|_| (value, None));
    };
    let us = time.parse::<f64>().ok().filter(|_| is_digits(time))?;
    let expected = 1e6 / value;
    let slack = TIME_ROUNDING + expected / value * RATE_ROUNDING;
    (value == 0.0 || (expected - us).abs() <= slack).then_some((value, Some(us)))
}

/// State of the reader.
#[derive(Default)]
struct PgTestFsyncReader {
    outputs: Vec<Output>,
    /// The output being read.
    output: Option<Output>,
    /// The last shell command that calls the program.
    command: Option<String>,
    /// The current heading.
    heading: Option<Heading>,
    /// True if the heading already has rows.
    rows_under_it: bool,
    /// Sizes in headings: all are the WAL block size, so they must agree.
    sizes: Vec<u64>,
    /// Evidence of version and direct I/O.
    said: Vec<&'static str>,
}

impl PgTestFsyncReader {
    fn line(&mut self, line: TextLine<'_>) {
        let words = table::words(line.text);
        if let Some(command) = prompt(line.text) {
            self.close();
            self.command = command.contains("pg_test_fsync").then(|| command.to_owned()).or(self.command.take());
            return;
        }
        if let Some(head) = head(&words) {
            self.close();
            let output = self.open(line);
            let figures = vec![figure(head.0, head.1, head.2, words[0], line.number)];
            output.rows.push(Row { line: line.number, figures, ..Row::default() });
            self.said.extend((words[1] == "second").then_some("second"));
        } else if let Some((test, size)) = heading(&words) {
            if self
                .output
                .as_ref()
                .is_some_and(|output| rows(output).any(|row| row.labels[0].1 == test || test == ONE_WRITE))
            {
                self.close();
            }
            self.heading = Some((test, size));
            self.rows_under_it = false;
            self.sizes.extend(size);
            self.said.extend(["Non-Sync'ed", "Non-sync'ed"].iter().find(|word| words[0] == **word));
            self.open(line);
        } else if let Some(row) = PrintedRow::of(&words) {
            self.row(line, &row);
        } else {
            self.other(line, &words);
        }
    }

    fn open(&mut self, line: TextLine<'_>) -> &mut Output {
        let output = self.output.get_or_insert_with(|| table::output("pg_test_fsync", line.number));
        output.facts.extend(self.command.take().map(|command| ("command".to_owned(), command)));
        extend(output, line.number);
        output
    }

    fn row(&mut self, line: TextLine<'_>, row: &PrintedRow<'_>) {
        let under = self.heading.filter(|(test, _)| matches!(*test, ONE_WRITE | TWO_WRITES));
        let test = row.test.or(under.map(|(test, _)| test));
        self.rows_under_it = true;
        let output = self.open(line);
        let mut labels = vec![("test", test.unwrap_or_default().to_owned())];
        if let Some(bytes) = row.write_bytes {
            let whole = bytes > 0 && ALL_WRITES.is_multiple_of(bytes);
            labels.extend(whole.then(|| ("writes", (ALL_WRITES / bytes).to_string())));
            labels.push(("write_bytes", bytes.to_string()));
        }
        labels.push(("method", row.method.clone()));
        let mut read = table::row(labels, line.number);
        if test.is_none() || output.rows.iter().any(|known| known.labels == read.labels) {
            output.unread.push(table::unread(line, "a row that has not occurred under this heading"));
            return;
        }
        match row.value.map(|(rate, time)| (rate, time, rate_and_time(rate, time))) {
            Ok((rate, time, Some((value, us)))) => {
                read.figures.push(figure("rate", "ops/s", value, rate, line.number));
                let us = us.zip(time).map(|(us, time)| figure("latency_mean", "us", us, time, line.number));
                read.figures.extend(us);
            }
            Ok(_) => {
                output.unread.push(table::unread(line, "a rate with three decimals, and a time that fits it"));
                return;
            }
            Err(why) => read.absent = Some(why.to_owned()),
        }
        output.rows.push(read);
    }

    /// Handles a line that is not a head, heading or row.
    fn other(&mut self, line: TextLine<'_>, words: &[&str]) {
        let text = line.text;
        if words.is_empty() {
            return;
        }
        let of_heading = text.contains("wal_sync_method") || matches!(words, ["is", "Linux's", "default)"]);
        self.said.extend(text.contains("\"wal_sync_method\"").then_some("quoted"));
        let direct = [("F_NOCACHE supported", "F_NOCACHE"), ("O_DIRECT supported", "O_DIRECT")];
        let direct = direct.iter().find(|(words, _)| text.contains(words)).map(|(_, name)| *name);
        let direct = direct.or(text.contains("Direct I/O is not supported").then_some("not supported"));
        if let (Some(direct), Some(output)) = (direct, &mut self.output) {
            output.facts.push(("direct I/O".to_owned(), direct.to_owned()));
            extend(output, line.number);
            return;
        }
        // The test of rows after other text, or after a broken heading, is unknown.
        if self.rows_under_it || text.contains("Compare file sync") {
            self.heading = self.heading.filter(|_| of_heading && !self.rows_under_it);
        }
        let Some(output) = &mut self.output else { return };
        if ["write failed", "fsync failed", "open failed"].iter().any(|end| text.contains(end)) {
            table::note(output, "the tool ended early: a write or sync failed");
        }
        // The explanation of the size test mentions 16kB.
        if words.iter().any(|word| number(word.trim_end_matches([',', ';', ':', ')'])).is_some())
            || text.contains("ops/sec")
        {
            output.unread.push(table::unread(line, "a row of pg_test_fsync: a method and its operations a second"));
        }
    }

    /// Finishes the output: sizes, version. A head alone is an ordinary sentence.
    fn close(&mut self) {
        (self.heading, self.rows_under_it) = (None, false);
        let (sizes, said) = (std::mem::take(&mut self.sizes), std::mem::take(&mut self.said));
        let Some(mut output) = self.output.take().filter(|output| rows(output).next().is_some()) else { return };
        let last = output.rows.iter().map(|row| row.line).max().unwrap_or_default();
        output.unread.retain(|unread| unread.line <= last || !unread.wanted.starts_with("a row of pg_test_fsync"));
        output.lines.1 = output.unread.iter().map(|unread| unread.line).chain([last]).max().unwrap_or(last);
        if let Some(bytes) = sizes.first().filter(|bytes| sizes.iter().all(|size| size == *bytes)) {
            for row in output.rows.iter_mut().filter(|row| row.labels.len() == 2) {
                row.labels.insert(1, ("write_bytes".to_owned(), bytes.to_string()));
            }
        }
        output.version = version(&output, &said).map(str::to_owned);
        let count = rows(&output).count();
        output.notes.extend((count < ALL_ROWS).then(|| format!("{count} of its {ALL_ROWS} rows are there")));
        self.outputs.push(output);
    }
}

/// Rows of an output other than those of its head.
fn rows(output: &Output) -> impl Iterator<Item = &Row> {
    output.rows.iter().filter(|row| !row.labels.is_empty())
}

/// Figure of the head: `5 seconds per test`, `2000 operations per test`.
fn head(words: &[&str]) -> Option<(&'static str, &'static str, f64)> {
    let [count, of, "per", "test"] = words else { return None };
    let value = f64::from(count.parse::<u32>().ok()?);
    match *of {
        "operations" => Some(("operations_per_test", "count", value)),
        "seconds" | "second" => Some(("seconds_per_test", "s", value)),
        _ => None,
    }
}

/// The version implied by the format; `None` if rows contradict each other.
fn version(output: &Output, said: &[&str]) -> Option<&'static str> {
    let [rates, times, sizes] = ["rate", "latency_mean", "operations_per_test"]
        .map(|name| output.rows.iter().filter(|row| row.figure(name).is_some()).count());
    let old = sizes > 0;
    let direct = output.facts.iter().any(|(_, value)| value == "F_NOCACHE");
    match () {
        () if times > 0 && (times < rates || old) => None,
        () if old => Some("9.1"),
        () if times == 0 => (rates > 1).then_some("9.2"),
        () if said.contains(&"Non-Sync'ed") => Some("9.3 or 9.4"),
        () if said.contains(&"quoted") || direct => Some("17 or newer"),
        () if said.contains(&"second") => Some("11 or newer"),
        () if said.contains(&"Non-sync'ed") => Some("9.5 or newer"),
        () => Some("9.3 or newer"),
    }
}
