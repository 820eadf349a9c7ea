//! macOS' `vm_stat`: one figure a line, or with an interval one row a report.
//!
//! Pages and events are counts. With an interval the first row below each heading has totals since boot; in later ones
//! events are what was added meanwhile. A number that is too wide there ends in a power of 1000.

use super::super::output::{Line, Output, Row};
use super::super::table;
use crate::foreign::clean as web;

/// Whether the line is the first of `vm_stat`.
pub(super) fn is_heading(text: &str) -> bool {
    text.trim().starts_with("Mach Virtual Memory Statistics")
}

/// The `vm_stat` whose heading is at `at`, and how many lines it takes.
pub(super) fn read(lines: &[Line<'_>], at: usize) -> Option<(Output, usize)> {
    let heading = lines[at];
    if !is_heading(heading.text) {
        return None;
    }
    let mut output = Output { tool: "vm_stat", lines: (heading.number, heading.number), ..Output::default() };
    let size = heading.text.split_once("page size of ").and_then(|(_, rest)| rest.split_whitespace().next());
    output.facts.extend(size.map(|size| ("page size in bytes".to_owned(), size.to_owned())));
    let names = lines.get(at + 1).map(|line| table::words(line.text)).unwrap_or_default();
    let used = match columns(&names) {
        Some(columns) => 2 + reports(&mut output, &columns, &lines[at + 2..]),
        None => 1 + totals(&mut output, heading, &lines[at + 1..]),
    };
    lines[at..at + used].iter().for_each(|line| table::extend(&mut output, line.number));
    Some((output, used))
}

/// One figure a line.
fn totals(output: &mut Output, heading: Line<'_>, lines: &[Line<'_>]) -> usize {
    let mut row = Row { line: heading.number, since_boot: Some(true), ..Row::default() };
    let mut used = 0;
    while let Some(line) = lines.get(used) {
        let Some((name, value)) = line.text.trim().rsplit_once(':').filter(|(name, _)| !name.contains(':')) else {
            break;
        };
        let value = value.trim().trim_end_matches('.');
        let name = plain(name);
        match web::number(value) {
            Some(number) => row.figures.push(table::figure(&name, unit(&name), number, value, line.number)),
            None => output.unread.push(table::unread(*line, "a number of pages or events")),
        }
        used += 1;
    }
    table::note(output, "events are totals since boot");
    output.rows.push(row);
    used
}

/// Columns of the interval form, with the names that the other form has for them.
const COLUMNS: &[(&str, &str)] = &[
    ("free", "pages_free"),
    ("active", "pages_active"),
    ("spec", "pages_speculative"),
    ("specul", "pages_speculative"),
    ("inactive", "pages_inactive"),
    ("throttle", "pages_throttled"),
    ("wire", "pages_wired_down"),
    ("wired", "pages_wired_down"),
    ("prgable", "pages_purgeable"),
    ("faults", "translation_faults"),
    ("copy", "pages_copy_on_write"),
    ("0fill", "pages_zero_filled"),
    ("reactive", "pages_reactivated"),
    ("purged", "pages_purged"),
    ("file-backed", "file_backed_pages"),
    ("anonymous", "anonymous_pages"),
    ("cmprssed", "pages_stored_in_compressor"),
    ("cmprssor", "pages_occupied_by_compressor"),
    ("dcomprs", "decompressions"),
    ("comprs", "compressions"),
    ("pageins", "pageins"),
    ("pageout", "pageouts"),
    ("swapins", "swapins"),
    ("swapouts", "swapouts"),
];

/// The figures of the columns, if these words are their names.
fn columns(names: &[&str]) -> Option<Vec<&'static str>> {
    let of = |word: &&str| COLUMNS.iter().find(|(column, _)| column == word).map(|(_, name)| *name);
    names.starts_with(&["free", "active"]).then(|| names.iter().map(of).collect::<Option<_>>()).flatten()
}

/// A row a report.
fn reports(output: &mut Output, columns: &[&'static str], lines: &[Line<'_>]) -> usize {
    let mut used = 0;
    let mut report = 0;
    while let Some(line) = lines.get(used).filter(|line| !line.text.is_empty()) {
        let (words, taken) = table::wrapped(lines, used, columns.len(), |word| count(word).is_some());
        if words.iter().filter(|(_, word)| count(word).is_some()).count() * 2 < words.len() {
            break;
        }
        used += taken;
        report += 1;
        let values: Option<Vec<f64>> = words.iter().map(|(_, word)| count(word)).collect();
        let Some(values) = values.filter(|values| values.len() == columns.len()) else {
            output.unread.push(table::unread(*line, format!("{} counts, one for each column", columns.len())));
            continue;
        };
        let mut row = table::row(vec![("report", report.to_string())], line.number);
        row.since_boot = Some(report == 1);
        for ((name, value), (number, word)) in columns.iter().zip(values).zip(words) {
            row.figures.push(table::figure(name, unit(name), value, word, number));
        }
        output.rows.push(row);
    }
    table::note(output, "events of the first report are totals since boot, those of later ones of an interval");
    used
}

/// A number that may be shortened to a power of 1000.
fn count(word: &str) -> Option<f64> {
    let (digits, factor) = match word.char_indices().next_back()? {
        (at, 'K') => (&word[..at], 1e3),
        (at, 'M') => (&word[..at], 1e6),
        (at, 'G') => (&word[..at], 1e9),
        _ => (word, 1.0),
    };
    Some(web::number(digits)? * factor)
}

fn unit(name: &str) -> &'static str {
    match name {
        "translation_faults" => "faults",
        "pageouts" | "swapins" | "swapouts" | "compressions" | "decompressions" => "pages",
        _ if name.starts_with("pages_") || name.ends_with("_pages") => "pages",
        _ => "count",
    }
}

/// `"Translation faults"` as `translation_faults`.
fn plain(name: &str) -> String {
    let kept = name.trim().trim_matches('"').chars();
    kept.map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}
