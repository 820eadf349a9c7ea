//! `iostat -o JSON` of sysstat 11.5 and later.

use super::super::json::{Leaf, document};
use super::super::output::{Line, Output, Row};
use super::super::table;
use super::columns;
use std::collections::HashMap;

/// Whether the text holds a report in JSON.
pub(super) fn is_one(lines: &[Line<'_>]) -> bool {
    let heads = lines.iter().enumerate().filter(|(_, line)| line.text.starts_with("{\"sysstat\"") || line.text == "{");
    let mut near = heads.map(|(at, _)| &lines[at..lines.len().min(at + 16)]);
    near.any(|lines| {
        lines.iter().any(|line| line.text.contains("\"avg-cpu\"") || line.text.contains("\"disk_device\""))
    })
}

/// The document that begins with the first line and how many lines it takes.
pub(super) fn read(lines: &[Line<'_>]) -> Option<(Output, usize)> {
    if !lines.first()?.text.starts_with('{') || !is_one(&lines[..1.max(lines.len().min(16))]) {
        return None;
    }
    let mut output = Output { tool: "iostat -o JSON", ..Output::default() };
    let mut places = HashMap::new();
    let used = document(lines, &mut output, |output, leaf| take(output, &mut places, leaf));
    // A device that was named needs its position no more.
    output.rows.iter_mut().filter(|row| row.labels.len() == 3).for_each(|row| row.labels.truncate(2));
    table::note(&mut output, "the first report is an average since boot, unless iostat ran with -y");
    Some((output, used))
}

/// `sysstat.hosts.0.statistics.1.disk.0.r/s` and its siblings; whatever stands beside them is a fact.
fn take(output: &mut Output, places: &mut HashMap<String, usize>, leaf: &Leaf<'_>) {
    let path: Vec<&str> = leaf.path.iter().map(String::as_str).collect();
    let (report, group, at, column) = match path.as_slice() {
        ["sysstat", "hosts", _, "statistics", report, "avg-cpu", column] => (report, "cpu", "all", *column),
        ["sysstat", "hosts", _, "statistics", report, "disk", at, column] => (report, "device", *at, *column),
        ["sysstat", "hosts", _, "statistics", report, "timestamp"] => {
            output.facts.push((format!("time of report {}", next(report)), leaf.text.to_string()));
            return;
        }
        [.., name] => {
            output.facts.push(((*name).to_owned(), leaf.text.to_string()));
            return;
        }
        [] => return,
    };
    let labels = vec![("report", next(report)), (group, at.to_owned())];
    let index = *places.entry(format!("{report} {group} {at}")).or_insert_with(|| {
        let since_boot = Some(*report == "0");
        output.rows.push(Row { since_boot, ..table::row(labels, leaf.line) });
        output.rows.len() - 1
    });
    let row = &mut output.rows[index];
    let Some(number) = leaf.number else {
        if column == "disk_device" {
            // The position told this device's figures from the next one's until its name was known.
            row.labels.insert(1, ("device", leaf.text.to_string()));
        }
        return;
    };
    let known = match group {
        "cpu" => columns::of_machine(&format!("%{column}")).map(|(_, known)| known),
        _ => columns::of_device(column),
    };
    match known {
        Some(known) => {
            let value = number * known.factor;
            row.figures.push(table::figure(known.name, known.unit, value, &leaf.text, leaf.line));
        }
        None => table::unknown_column(output, Line { number: leaf.line, text: &leaf.text, indent: 0 }, column),
    }
}

fn next(position: &str) -> String {
    position.parse().map_or_else(|_| position.to_owned(), |position: usize| (position + 1).to_string())
}
