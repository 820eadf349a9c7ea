//! What `import` shows on the terminal: of each file what was taken from which lines, then cases and what is not known.

use crate::cli::out;
use crate::error::Result;
use crate::import::Reading;
use crate::record::imported::{ImportRecord, ImportedLog, ImportedOutput, ImportedRow};
use crate::units::grouped;
use std::path::Path;

/// Lines that could not be read.
pub(super) fn unread(reading: &Reading) -> u64 {
    let named: usize = reading.outputs.iter().map(|output| output.unread.len()).sum();
    // Of a log all are counted, and only the first are named.
    (named as u64).max(reading.log.as_ref().map_or(0, |log| log.lines_unread))
}

/// What was taken from a file.
///
/// # Errors
/// When standard output takes no more.
pub(super) fn file(reading: &Reading, rows: bool) -> Result<()> {
    let file = &reading.file;
    let as_it_is: Vec<&str> = [file.packed.as_deref(), file.encoding.as_deref()].into_iter().flatten().collect();
    let mut text = out::harmless(&file.name);
    if !as_it_is.is_empty() {
        text.push_str(&format!(" ({})", as_it_is.join(", ")));
    }
    text.push('\n');
    for output in &reading.outputs {
        text.push_str(&taken(output, reading.log.as_ref()));
        for row in output.rows.iter().filter(|_| rows) {
            text.push_str(&row_line(row));
        }
        for (line, found, wanted) in &output.unread {
            text.push_str(&format!("    line {line} could not be read: `{}`; wanted {wanted}\n", out::harmless(found)));
        }
        for note in &output.notes {
            text.push_str(&format!("    {}\n", out::harmless(note)));
        }
    }
    if !reading.other.is_empty() {
        let runs: Vec<String> = reading.other.iter().take(10).map(|lines| range(*lines)).collect();
        let more = if reading.other.len() > runs.len() { " and more" } else { "" };
        text.push_str(&format!("  {}{more}: numbers that belong to no known output\n", runs.join(", ")));
    }
    out::bytes(text.as_bytes())
}

/// `lines 1-36  pg_test_fsync, 17 or newer: 19 rows, 33 numbers`.
fn taken(output: &ImportedOutput, log: Option<&ImportedLog>) -> String {
    let version = output.version.as_ref().map(|version| format!(", {version}")).unwrap_or_default();
    let what = match log.filter(|_| output.rows.is_empty() && output.tool == "pgbench -l") {
        Some(log) => log_in_words(log),
        None => {
            let numbers: usize = output.rows.iter().map(|row| row.figures.len()).sum();
            let facts = match output.facts.len() {
                0 => String::new(),
                count => format!(", {}", counted(count, "fact")),
            };
            format!("{}, {}{facts}", counted(output.rows.len(), "row"), counted(numbers, "number"))
        }
    };
    format!("  {}  {}{}: {what}\n", range(output.lines), output.tool, out::harmless(&version))
}

fn log_in_words(log: &ImportedLog) -> String {
    let second = |us: u64| {
        let at = i64::try_from(us / 1_000_000).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
        at.map_or_else(|| "?".to_owned(), |at| at.to_string())
    };
    let span = match log.span_us {
        Some((first, last)) => format!("{} to {}", second(first), second(last)),
        None => "without dates".to_owned(),
    };
    let done = grouped(log.done);
    format!("{done} done, {} skipped, {} failed, {span}", grouped(log.skipped), grouped(log.failed))
}

fn range((first, last): (u32, u32)) -> String {
    if first == last { format!("line {first}") } else { format!("lines {first}-{last}") }
}

fn counted(count: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// `line 5  fdatasync: rate 3777.334 ops/s (3777,334)`.
fn row_line(row: &ImportedRow) -> String {
    let labels: Vec<String> = row.labels.iter().map(|(_, value)| out::harmless(value)).collect();
    let figures: Vec<String> = row
        .figures
        .iter()
        .map(|figure| {
            let unit = if figure.unit.is_empty() { String::new() } else { format!(" {}", figure.unit) };
            format!("{} {}{unit} ({})", out::harmless(&figure.name), figure.value, out::harmless(&figure.text))
        })
        .collect();
    let absent = row.absent.iter().map(|why| out::harmless(why));
    let values: Vec<String> = figures.into_iter().chain(absent).collect();
    let since_boot = match row.since_boot {
        Some(false) => "",
        Some(true) => " (since boot)",
        None => " (perhaps since boot)",
    };
    format!("    line {}  {}{since_boot}: {}\n", row.line, labels.join(", "), values.join(", "))
}

/// The cases, what is not known, and where it was stored.
///
/// # Errors
/// When standard output takes no more.
pub(super) fn end(record: &ImportRecord, folder: Option<&Path>) -> Result<()> {
    let mut text = String::from("\n");
    for case in &record.cases {
        for (index, trial) in case.trials.iter().enumerate() {
            let files: Vec<String> = trial.files.iter().map(|file| out::harmless(&file.name)).collect();
            text.push_str(&format!("case {}, trial {}: {}\n", case.name, index + 1, files.join(", ")));
        }
        let facts: Vec<String> =
            case.facts.iter().map(|(key, value)| out::harmless(&format!("{key} = {value}"))).collect();
        if !facts.is_empty() {
            text.push_str(&format!("  {}\n", facts.join(", ")));
        }
    }
    if let Some(measured) = &record.origin.measured {
        text.push_str(&format!("measured {}\n", out::harmless(measured)));
    }
    if !record.unknown.is_empty() {
        text.push_str(&format!("not told: {}\n", record.unknown.join("; ")));
        text.push_str("  what you know of it: --set origin.machine=... --set stack.filesystem=...\n");
    }
    match folder {
        Some(folder) => text.push_str(&format!("\nstored      {}\n", folder.display())),
        None => text.push_str("\nnothing was stored\n"),
    }
    out::bytes(text.as_bytes())
}
