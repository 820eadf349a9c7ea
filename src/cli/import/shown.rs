//! Terminal output of `import`: parsed lines of each file, then cases and unknown facts.

use crate::analyse::compare::from_import;
use crate::analyse::shelf::findings::RuleRemark;
use crate::cli::out;
use crate::error::Result;
use crate::foreign::FileReading;
use crate::host::command::quoted;
use crate::record::imported::{ImportRecord, ImportedLog, ImportedOutput, ImportedRow, ImportedTimes, Unread};
use crate::report;
use crate::units::{grouped, significant};
use std::path::Path;

/// Maximum number of unreadable lines that are shown by default for one output.
const MOST_UNREAD: usize = 20;

/// Number of unreadable lines.
pub(super) fn unread(reading: &FileReading) -> u64 {
    let named: usize = reading.outputs.iter().map(|output| output.unread.len()).sum();
    // All unreadable lines of a log are counted, but only the first are listed.
    (named as u64).max(reading.log.as_ref().map_or(0, |log| log.lines_unread))
}

/// Shows what was parsed from a file.
///
/// # Errors
/// If standard output cannot be written.
pub(super) fn file(reading: &FileReading, rows: bool) -> Result<()> {
    let file = &reading.file;
    let as_it_is: Vec<&str> = [file.packed.as_deref(), file.encoding.as_deref()].into_iter().flatten().collect();
    let mut text = out::harmless(&file.name);
    text.extend((!as_it_is.is_empty()).then(|| format!(" ({})", as_it_is.join(", "))));
    text.push('\n');
    for output in &reading.outputs {
        text.push_str(&taken(output, reading.log.as_ref()));
        text.extend(output.rows.iter().filter(|_| rows).map(row_line));
        let most = if rows { usize::MAX } else { MOST_UNREAD };
        for Unread { line, text: found, wanted } in output.unread.iter().take(most) {
            let found = out::harmless(found);
            text.push_str(&format!("    line {line} could not be read: `{found}`; expected {wanted}\n"));
        }
        if output.unread.len() > most {
            let more = grouped((output.unread.len() - most) as u64);
            text.push_str(&format!("    and {more} more lines: --rows shows them\n"));
        }
        text.extend(output.notes.iter().map(|note| format!("    {}\n", out::harmless(note))));
    }
    let other = &reading.file.lines_of_no_output;
    if !other.is_empty() {
        let runs: Vec<String> = other.iter().take(10).map(|lines| range(*lines)).collect();
        let more = if other.len() > runs.len() { " and more" } else { "" };
        text.push_str(&format!("  {}{more}: look like measurements, but in no known format\n", runs.join(", ")));
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
    let span = match log.span_us {
        Some((first, last)) => format!("{} to {}", second(first), second(last)),
        None => "without timestamps".to_owned(),
    };
    let done = format!("{} done{}", grouped(log.done), times(&log.latency, "latency"));
    let mut parts = vec![done, format!("{} skipped", grouped(log.skipped))];
    parts.extend(log.failed.map(|failed| format!("{} failed", grouped(failed))));
    if let Some((transactions, retries)) = log.retried {
        parts.push(format!("{} retried, {} retries in total", grouped(transactions), grouped(retries)));
    }
    if let Some(lag) = log.lag.as_ref().filter(|lag| lag.count > 0) {
        parts.push(format!("behind the schedule{}", times(lag, "by")));
    }
    parts.push(span);
    parts.join(", ")
}

fn second(us: u64) -> String {
    let at = i64::try_from(us / 1_000_000).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
    at.map_or_else(|| "?".to_owned(), |at| at.to_string())
}

/// ` (latency 8.21 ms on average, 72.3 ms at most)`.
fn times(times: &ImportedTimes, what: &str) -> String {
    if times.count == 0 {
        return String::new();
    }
    let mean = times.sum_us as f64 / times.count as f64;
    let [mean, most] = [mean, times.most_us as f64].map(|us| significant(us / 1000.0));
    format!(" ({what} {mean} ms on average, {most} ms at most)")
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
    let figures = row.figures.iter().map(|figure| {
        let unit = if figure.unit.is_empty() { String::new() } else { format!(" {}", figure.unit) };
        format!("{} {}{unit} ({})", out::harmless(&figure.name), figure.value, out::harmless(&figure.text))
    });
    let absent = row.absent.iter().map(|why| out::harmless(why));
    let values: Vec<String> = figures.chain(absent).collect();
    let since_boot = match row.since_boot {
        Some(false) => "",
        Some(true) => " (since boot)",
        None => " (perhaps since boot)",
    };
    format!("    line {}  {}{since_boot}: {}\n", row.line, labels.join(", "), values.join(", "))
}

/// Shows the cases with their files.
///
/// # Errors
/// If standard output cannot be written.
pub(super) fn cases(record: &ImportRecord) -> Result<()> {
    let mut text = String::from("\n");
    for case in &record.cases {
        for (index, trial) in case.trials.iter().enumerate() {
            let files: Vec<String> = trial.files.iter().map(|file| out::harmless(&file.name)).collect();
            text.push_str(&format!("case {}, trial {}: {}\n", case.name, index + 1, files.join(", ")));
        }
        let facts: Vec<String> =
            case.facts.iter().map(|(key, value)| out::harmless(&format!("{key} = {value}"))).collect();
        text.extend((!facts.is_empty()).then(|| format!("  {}\n", facts.join(", "))));
        text.extend(case.caveats.iter().map(|caveat| format!("  {}\n", out::harmless(caveat))));
    }
    out::bytes(text.as_bytes())
}

/// Shows unknown facts, remarks on the figures, and where the import was stored.
///
/// # Errors
/// If standard output cannot be written.
pub(super) fn end(record: &ImportRecord, remarks: &[RuleRemark], folder: Option<&Path>) -> Result<()> {
    let mut text = String::new();
    text.extend(record.origin.measured.as_ref().map(|measured| format!("measured {}\n", out::harmless(measured))));
    if !record.unknown.is_empty() {
        text.push_str(&format!("unknown: {}\n", record.unknown.join("; ")));
        text.push_str("  add what you know: --set origin.machine=... --set stack.filesystem=...\n");
    }
    text.push_str(&said(remarks));
    let Some(folder) = folder.map(|folder| out::harmless(&folder.display().to_string())) else {
        return out::bytes(format!("{text}\nnothing was stored\n").as_bytes());
    };
    text.push_str(&format!("\nstored      {folder}\n"));
    // `compare` can use its figures.
    if from_import::sides(0, "", record, None).iter().any(|side| !side.measures.is_empty()) {
        text.push_str(&format!("compare     pgstrata compare {} .\n", quoted(folder.as_ref())));
    }
    out::bytes(text.as_bytes())
}

/// Remarks on the figures, gravest first.
fn said(remarks: &[RuleRemark]) -> String {
    const MOST_SHOWN: usize = 20;
    let mut text = report::shelf::remarks(&remarks[..remarks.len().min(MOST_SHOWN)]);
    if remarks.len() > MOST_SHOWN {
        text.push_str(&format!("  and {} more: --json lists all\n", remarks.len() - MOST_SHOWN));
    }
    text
}
