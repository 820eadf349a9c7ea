//! macOS' `vm_stat`: one figure a line.

use super::super::output::{Line, Output, Row};
use super::super::{table, web};

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
    let mut row = Row { line: heading.number, since_boot: true, ..Row::default() };
    let mut used = 1;
    while let Some(line) = lines.get(at + used) {
        let Some((name, value)) = line.text.trim().rsplit_once(':').filter(|(name, _)| !name.contains(':')) else {
            break;
        };
        let value = value.trim().trim_end_matches('.');
        match web::number(value) {
            Some(number) => row.figures.push(table::figure(&plain(name), "", number, value, line.number)),
            None => output.unread.push(table::unread(*line, "a number of pages or events")),
        }
        table::extend(&mut output, line.number);
        used += 1;
    }
    for figure in row.figures.iter_mut().filter(|figure| figure.name.starts_with("pages_")) {
        figure.unit = "pages";
    }
    table::note(&mut output, "events are totals since boot");
    output.rows.push(row);
    Some((output, used))
}

/// `"Translation faults"` as `translation_faults`.
fn plain(name: &str) -> String {
    let kept = name.trim().trim_matches('"').chars();
    kept.map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}
