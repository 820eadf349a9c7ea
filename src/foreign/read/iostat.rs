//! `iostat` of Linux (sysstat), and `iostat -x` of FreeBSD and illumos: devices, processors, terminal. Absent on
//! purpose: tables with the disks side by side (macOS, and without `-x`), which do not separate reads from writes;
//! totals (`-I`); `-r` of illumos.
//!
//! Figures have the same names and units on every system. Latency includes queue and device, as seen by a request; `k`
//! and `M` of every iostat are powers of 1024, a sector is 512 bytes.
//!
//! The meaning of each column is in `columns.rs`.
//!
//! Labels: `report` (from 1), `time` (where printed), then `device`, or `cpu`, `tty` with `all`.
//!
//! Line by line: a row has a word for each column of its heading, or it is listed as not read.

mod columns;
#[cfg(test)]
mod tests;

use super::output::{Output, Row, TextLine};
use super::table;
use crate::foreign::clean::number;

/// Reads every report of every iostat in the text.
pub fn read(lines: &[TextLine<'_>]) -> Vec<Output> {
    let mut reader = IostatReader::default();
    lines.iter().for_each(|line| reader.take(*line));
    reader.close();
    reader.outputs
}

/// Rows of a line, and its oddities.
type Rows = (Vec<Row>, Vec<String>);

/// Column names of a table of devices, one row per device, or of the processors.
struct Header {
    columns: Vec<String>,
    /// True if the device name follows its figures (`-h` on Linux, `-n` on illumos).
    name_last: bool,
    /// `None` for avg-cpu.
    tool: Option<&'static str>,
}

impl Header {
    fn of(text: &str) -> Option<Header> {
        let mut words = table::words(text);
        if words.first() == Some(&"avg-cpu:") {
            let all = words.len() > 1 && words[1..].iter().all(|word| word.starts_with('%'));
            return all.then(|| Header { columns: owned(&words[1..]), name_last: false, tool: None });
        }
        // `disk` is from Solaris 2.
        let at = words.iter().position(|word| matches!(word.trim_end_matches(':'), "Device" | "device" | "disk"))?;
        let extended = words.remove(at).starts_with('D');
        let seen = words.iter().filter(|word| columns::of_device(word).is_some()).count();
        // illumos and FreeBSD print the columns of terminal and processors after those of devices (`-tC`).
        let machine = words.iter().rev().take_while(|word| columns::of_machine(word).is_some()).count();
        let sensible = seen >= 2 && seen * 2 > words.len() - machine && (at == 0 || at == words.len());
        let tool = tool_of(&words, extended);
        sensible.then(|| Header { columns: owned(&words), name_last: at > 0, tool: Some(tool) })
    }

    /// Rows of a line and its oddities: the device's, and those of terminal and processors if their columns follow the
    /// first device's. `None` if the line is not a row; an error says what was expected.
    fn rows(&self, line: TextLine<'_>) -> Option<Result<Rows, String>> {
        let mut words = table::words(line.text);
        // A disk's label (`-j LABEL`) may contain blanks.
        let named = words.len().saturating_sub(self.columns.len()).max(1).min(words.len());
        let device = match (self.tool.is_some() && !words.is_empty(), self.name_last) {
            (false, _) => None,
            (true, true) => Some(words.split_off(words.len() - named).join(" ")),
            (true, false) => Some(words.drain(..named).collect::<Vec<_>>().join(" ")),
        };
        if words.is_empty() || table::count_numbers(&words) * 2 < words.len() {
            return None;
        }
        if device.as_ref().is_some_and(|name| name.split(' ').any(|word| number(word).is_some())) {
            return Some(Err("a device, and figures".to_owned()));
        }
        // On illumos only the first row has columns of terminal and processors.
        let machine = self.columns.iter().rev().take_while(|column| columns::of_machine(column).is_some()).count();
        let all = self.columns.len();
        if words.len() != all && !(self.tool.is_some() && words.len() + machine == all) {
            return Some(Err(format!("{all} figures, one for each column")));
        }
        let of_device = device.map(|name| table::row(vec![("device", name)], line.number));
        let mut rows: Vec<Row> = of_device.into_iter().collect();
        let mut odd = Vec::new();
        for (column, word) in self.columns.iter().zip(words) {
            let of = if self.tool.is_some() { columns::of_any(column) } else { columns::of_machine(column) };
            let Some((owner, (name, unit, factor))) = of else { continue };
            // With `-h` on Linux a size has its own unit, whatever the column says.
            let sized = || matches!(unit, "B" | "B/s").then(|| table::suffixed(word)).flatten();
            let Some(value) = table::percent(word).map(|number| number * factor).or_else(sized) else {
                odd.push(format!("a number for {column}, not `{word}`"));
                continue;
            };
            let index = rows.iter().position(|row| row.labels[0].0 == owner).unwrap_or_else(|| {
                rows.push(table::row(vec![(owner, "all".to_owned())], line.number));
                rows.len() - 1
            });
            rows[index].figures.push(table::figure(name, unit, value, word, line.number));
        }
        Some(Ok((rows, odd)))
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn tool_of(columns: &[&str], capital: bool) -> &'static str {
    if columns.contains(&"actv") || columns.contains(&"trn") {
        "iostat (illumos)"
    } else if columns.contains(&"qlen") {
        "iostat -x (FreeBSD)"
    } else if capital && !columns.contains(&"tps") || columns.contains(&"%util") {
        "iostat -x"
    } else {
        "iostat"
    }
}

/// State of the reader.
#[derive(Default)]
struct IostatReader {
    outputs: Vec<Output>,
    current: Option<DeviceReport>,
    /// Arguments of the iostat called on a shell line, until its output begins.
    called: Option<String>,
    /// Time stamp above an output that has not begun yet.
    time: Option<String>,
}

struct DeviceReport {
    output: Output,
    header: Option<Header>,
    report: u32,
    time: Option<String>,
    /// Headings of the current report, to detect the next one, and devices under the last heading: if `grep` left no
    /// heading between reports, a repeated device begins the next report.
    seen: Vec<Vec<String>>,
    devices: Vec<String>,
    /// True if the first report is an average since boot, if known.
    since_boot: Option<bool>,
}

impl IostatReader {
    fn take(&mut self, line: TextLine<'_>) {
        if line.text.is_empty() || is_over_heading(line.text) {
            return;
        }
        let command = table::command(line.text, "iostat").filter(|_| !line.text.contains("zpool"));
        if command.is_some() || table::is_prompt(line.text) {
            self.close();
            self.called = command.map(str::to_owned);
        } else if let Some(facts) = linux_heading(line.text) {
            self.open(line, "iostat").output.facts.extend(facts);
        } else if let Some(header) = Header::of(line.text) {
            self.begin(header, line);
        } else {
            self.row(line);
        }
    }

    fn row(&mut self, line: TextLine<'_>) {
        let time = table::is_time(line.text).then(|| line.text.trim_start_matches("Time: ").to_owned());
        let Some(current) = &mut self.current else {
            // The output of a shell line begins at once, or its beginning is missing.
            self.called = self.called.take().filter(|_| time.is_some());
            self.time = time;
            return;
        };
        if time.is_some() {
            current.next_report();
            current.time = time;
            table::extend(&mut current.output, line.number);
        } else if table::is_omission(line.text) {
            // The remaining rows may be of any report.
            current.since_boot = current.since_boot.filter(|_| !current.output.rows.is_empty());
        } else if !current.row(line) {
            self.close();
        }
    }

    fn begin(&mut self, header: Header, line: TextLine<'_>) {
        // Tables of one report have no column in common (`-h`); different columns mean another iostat.
        if self.current.as_ref().is_some_and(|current| current.is_ended_by(&header)) {
            self.close();
        }
        let tool = header.tool.unwrap_or("iostat");
        let current = match self.current.take() {
            Some(current) => self.current.insert(current),
            None => self.open(line, tool),
        };
        if current.output.tool == "iostat" {
            tool.clone_into(&mut current.output.tool);
        }
        if current.seen.contains(&header.columns) || (header.tool.is_none() && !current.seen.is_empty()) {
            current.next_report();
        }
        for column in header.columns.iter().filter(|column| columns::of_any(column).is_none()) {
            table::unknown_column(&mut current.output, line, column);
        }
        current.seen.push(header.columns.clone());
        current.devices.clear();
        current.header = Some(header);
        table::extend(&mut current.output, line.number);
    }

    fn open(&mut self, line: TextLine<'_>, tool: &'static str) -> &mut DeviceReport {
        let called = self.called.take();
        self.close();
        // Without `-y`, which only Linux has, the first report of every iostat is an average since boot.
        let since_boot = called.map(|arguments| !table::has_option(&arguments, 'y'));
        let output = table::output(tool, line.number);
        let (time, seen, devices) = (self.time.take(), Vec::new(), Vec::new());
        self.current.insert(DeviceReport { output, header: None, report: 1, time, seen, devices, since_boot })
    }

    fn close(&mut self) {
        self.called = None;
        let Some(DeviceReport { mut output, since_boot, .. }) = self.current.take() else { return };
        if output.rows.is_empty() && output.unread.is_empty() {
            return;
        }
        if since_boot.is_none() {
            table::note(&mut output, "unknown whether the first report is an average since boot");
        }
        self.outputs.push(output);
    }
}

impl DeviceReport {
    /// True if a heading is of another tool, or shares columns with a different one of this report.
    fn is_ended_by(&self, header: &Header) -> bool {
        let is_strange = header.tool.is_some_and(|tool| self.output.tool != tool)
            && !matches!(&*self.output.tool, "iostat" | "iostat -x");
        let mut others = self.seen.iter().filter(|seen| **seen != header.columns).flatten();
        is_strange || others.any(|column| header.columns.contains(column))
    }

    fn next_report(&mut self) {
        if !self.output.rows.is_empty() {
            self.report += 1;
        }
        self.seen.clear();
        self.devices.clear();
        self.time = None;
    }

    /// Reads a row; true if the line is one.
    fn row(&mut self, line: TextLine<'_>) -> bool {
        let Some(found) = self.header.as_ref().and_then(|header| header.rows(line)) else { return false };
        table::extend(&mut self.output, line.number);
        let (rows, odd) = found.unwrap_or_else(|wanted| (Vec::new(), vec![wanted]));
        let device = rows.first().map(|row| &row.labels[0]).filter(|(kind, _)| kind == "device").map(|it| it.1.clone());
        if device.as_ref().is_some_and(|device| self.devices.contains(device)) {
            self.next_report();
        }
        self.devices.extend(device);
        self.output.unread.extend(odd.into_iter().map(|wanted| table::unread(line, wanted)));
        for mut row in rows {
            let time = self.time.clone().map(|time| ("time", time));
            let mut labels = table::owned([("report", self.report.to_string())].into_iter().chain(time));
            labels.append(&mut row.labels);
            let since_boot = if self.report == 1 { self.since_boot } else { Some(false) };
            self.output.rows.push(Row { labels, since_boot, ..row });
        }
        true
    }
}

/// True for a line that stands above column names.
fn is_over_heading(text: &str) -> bool {
    text.contains("extended device statistics")
        || text.contains("extended disk statistics")
        || text.split_whitespace().all(|word| word.starts_with("---") || matches!(word, "errors" | "tty" | "cpu"))
}

/// Kernel, host, date, machine and number of CPUs from the first line on Linux: `Linux 6.1 (host) 11/21/26 _x86_64_ (2
/// CPU)`.
fn linux_heading(text: &str) -> Option<Vec<(String, String)>> {
    let (kernel, rest) = text.strip_prefix("Linux ")?.split_once(" (")?;
    let (host, rest) = rest.split_once(')')?;
    if kernel.contains(char::is_whitespace) || !rest.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (middle, cpus) = rest.rsplit_once('(').unwrap_or((rest, ""));
    let mut facts = vec![("kernel", kernel), ("host", host.trim())];
    for word in middle.split_whitespace() {
        facts.push(if word.starts_with('_') { ("machine", word.trim_matches('_')) } else { ("date", word) });
    }
    facts.extend(cpus.trim().strip_suffix("CPU)").map(|cpus| ("cpus", cpus.trim())));
    Some(facts.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}
