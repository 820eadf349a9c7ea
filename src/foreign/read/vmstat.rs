//! `vmstat` of Linux (procps). `/proc/vmstat` is read elsewhere.
//!
//! Labels: `report`, `time` (`-t`). Each line is a report; a line without a figure for each column is listed as not
//! read. Memory is in KiB. With `-S`, which no heading shows, its columns and those of swapping are left out. Source:
//! vmstat(8) of procps-ng.

#[cfg(test)]
mod tests;

use super::output::{Output, Row, TextLine};
use super::table::{self, KIB};
use crate::foreign::clean::number;

/// Column, name, unit and factor.
const COLUMNS: &[(&str, &str, &str, f64)] = &[
    ("r", "run_queue", "tasks", 1.0),
    ("b", "blocked_tasks", "tasks", 1.0),
    ("swpd", "swap_used_bytes", "B", KIB),
    ("free", "free_bytes", "B", KIB),
    ("buff", "buffer_bytes", "B", KIB),
    ("cache", "cache_bytes", "B", KIB),
    ("inact", "inactive_bytes", "B", KIB),
    ("active", "active_bytes", "B", KIB),
    ("si", "swap_in_bytes_per_s", "B/s", KIB),
    ("so", "swap_out_bytes_per_s", "B/s", KIB),
    ("bi", "read_bytes_per_s", "B/s", KIB),
    ("bo", "write_bytes_per_s", "B/s", KIB),
    ("in", "interrupts_per_s", "interrupts/s", 1.0),
    ("cs", "context_switches_per_s", "switches/s", 1.0),
    ("us", "user_percent", "%", 1.0),
    ("sy", "system_percent", "%", 1.0),
    ("id", "idle_percent", "%", 1.0),
    ("wa", "iowait_percent", "%", 1.0),
    ("st", "steal_percent", "%", 1.0),
    ("gu", "guest_percent", "%", 1.0),
];

/// Reads every vmstat in the text.
pub fn read(lines: &[TextLine<'_>]) -> Vec<Output> {
    let mut reader = VmstatReader::default();
    lines.iter().for_each(|line| reader.take(*line));
    reader.close();
    reader.outputs
}

/// Column names, and true if a time zone stands above the time stamps of `-t`.
type Header = (Vec<String>, bool);

fn header(text: &str) -> Option<Header> {
    let mut words = table::words(text);
    let zone = words.last()?.chars().all(|c| c.is_ascii_uppercase() || "+-0123456789".contains(c));
    words.truncate(words.len() - usize::from(zone));
    let all = ["swpd", "free", "bi", "bo", "us", "sy", "id"].iter().all(|name| words.contains(name));
    (all && words.starts_with(&["r", "b"])).then(|| (words.into_iter().map(str::to_owned).collect(), zone))
}

#[derive(Default)]
struct VmstatReader {
    outputs: Vec<Output>,
    current: Option<(Header, Output)>,
    report: u32,
    called: Option<String>,
    /// True if vmstat ran with -S, so memory is not in KiB.
    scaled: bool,
    /// True if the lines before the first row are missing.
    cut: bool,
}

impl VmstatReader {
    fn take(&mut self, line: TextLine<'_>) {
        if line.text.is_empty() || line.text.trim_start_matches('-').starts_with("procs") || self.is_command(line.text)
        {
            return;
        }
        if let Some(header) = header(line.text) {
            if self.current.as_ref().is_none_or(|(current, _)| *current != header) {
                self.end();
                let mut output = table::output("vmstat", line.number);
                for column in header.0.iter().filter(|column| COLUMNS.iter().all(|(known, ..)| known != column)) {
                    table::unknown_column(&mut output, line, column);
                }
                self.current = Some((header, output));
            }
            return;
        }
        if self.current.is_none() {
            // The output of a shell line begins at once, or its beginning is missing; a warning may come first.
            self.called = self.called.take().filter(|_| line.text.starts_with("vmstat:"));
            return;
        }
        let words = table::words(line.text);
        let numbers = table::count_numbers(&words);
        if table::is_omission(line.text) {
            self.cut |= self.report == 0;
        } else if numbers < 4 || numbers * 2 < words.len() {
            self.close();
        } else {
            self.row(line, &words);
        }
    }

    fn row(&mut self, line: TextLine<'_>, words: &[&str]) {
        let Some(((names, zone), output)) = &mut self.current else { return };
        table::extend(output, line.number);
        let columns = names.len();
        let wanted = columns + 2 * usize::from(*zone);
        if words.len() != wanted || words[..columns].iter().any(|word| number(word).is_none()) {
            output.unread.push(table::unread(line, format!("{columns} figures, one for each column")));
            return;
        }
        self.report += 1;
        let by_arguments = self.called.as_deref().map(|arguments| !table::has_option(arguments, 'y'));
        let since_boot =
            if self.report == 1 { by_arguments.filter(|since| !(*since && self.cut)) } else { Some(false) };
        let mut labels = vec![("report", self.report.to_string())];
        labels.extend((words.len() > columns).then(|| ("time", words[columns..].join(" "))));
        let mut row = Row { since_boot, ..table::row(labels, line.number) };
        for (column, word) in names.iter().zip(words) {
            let Some((_, name, unit, factor)) = COLUMNS.iter().find(|(known, ..)| known == column) else { continue };
            if self.scaled && (*unit == "B" || name.starts_with("swap_")) {
                continue;
            }
            let value = number(word).map(|number| number * factor);
            row.figures.extend(value.map(|value| table::figure(name, unit, value, word, line.number)));
        }
        output.rows.push(row);
    }

    /// True if a line is a command or shows which was called; earlier output has ended.
    fn is_command(&mut self, text: &str) -> bool {
        let called = table::command(text, "vmstat");
        let arguments = text.split_once("vmstat").map(|(_, arguments)| arguments);
        let scaled = arguments.is_some_and(|them| table::has_option(them, 'S') || them.contains("--unit"));
        if called.is_none() && !scaled && !table::is_prompt(text) {
            return false;
        }
        self.close();
        (self.called, self.scaled) = (called.map(str::to_owned), scaled);
        true
    }

    /// Ends the output, and forgets the command.
    fn close(&mut self) {
        self.end();
        self.called = None;
    }

    fn end(&mut self) {
        let (cut, report) = (std::mem::take(&mut self.cut), std::mem::take(&mut self.report));
        let Some((_, mut output)) = self.current.take() else { return };
        let called = self.called.take();
        if report == 0 && output.unread.is_empty() {
            return;
        }
        if called.is_none() || cut {
            table::note(&mut output, "unknown whether the first report is an average since boot");
        }
        if self.scaled {
            table::note(&mut output, "memory, si and so are left out: -S changes their unit");
        } else if called.is_none() {
            table::note(&mut output, "memory is assumed to be in KiB, as without -S");
        }
        self.outputs.push(output);
    }
}
