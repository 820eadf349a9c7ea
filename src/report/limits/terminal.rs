//! Limits for a terminal, plain UTF-8 without colours. Every text from outside is passed through `printable`.

use super::super::terminal::{align_right, indented, plain_table};
use super::{change, summary, word};
use crate::analyse::limits::{LimitFinding, LimitFindings};
use crate::report::text::{paragraph, printable};
use crate::units::significant;

/// The whole report.
#[must_use]
pub fn terminal(findings: &LimitFindings) -> String {
    let mut text = paragraph("", &format!("{}: {}", word(findings.outcome), summary(findings)));
    text.push('\n');
    text.push_str(&paragraph("run       ", &findings.run));
    text.push_str(&paragraph("baseline  ", &findings.baseline));
    if !findings.limits.is_empty() {
        text.push('\n');
        text.push_str(&table(findings));
    }
    let mut seen: Vec<(&str, Vec<&LimitFinding>)> = Vec::new();
    for finding in &findings.limits {
        match seen.iter_mut().find(|(how, _)| *how == finding.how) {
            Some((_, all)) => all.push(finding),
            None => seen.push((&finding.how, vec![finding])),
        }
    }
    if !seen.is_empty() {
        text.push_str("\nHow each was decided\n");
    }
    for (how, all) in seen {
        let mut cases: Vec<&str> = all.iter().map(|finding| finding.case.as_str()).collect();
        cases.dedup();
        text.push_str(&paragraph("  - ", &format!("{}: {how}", cases.join(", "))));
    }
    if !findings.facts_that_differ.is_empty() {
        text.push_str("\nFacts that differ: the candidate causes\n");
    }
    for fact in &findings.facts_that_differ {
        let values = fact.values.iter().map(|value| value.as_deref().unwrap_or("unknown"));
        text.push_str(&paragraph("  ", &format!("{}: {}", fact.key, values.collect::<Vec<_>>().join(" → "))));
    }
    if !findings.notes.is_empty() {
        text.push_str("\nNotes\n");
    }
    findings.notes.iter().for_each(|note| text.push_str(&paragraph("  - ", &format!("{note}."))));
    text
}

/// A limit as given by the user; one that covers several figures of a case, with the name of the figure.
fn limit(finding: &LimitFinding, all: &[LimitFinding]) -> String {
    let alike = all.iter().filter(|one| one.case == finding.case && one.limit == finding.limit).count();
    if alike > 1 { format!("{} of {}", finding.limit, finding.measure) } else { finding.limit.clone() }
}

fn table(findings: &LimitFindings) -> String {
    let mut table = plain_table();
    table.set_header(["", "case", "limit", "baseline", "run", "change (95 % CI)"].map(str::to_owned));
    for finding in &findings.limits {
        let figure = |value: Option<f64>| {
            value.map_or_else(|| "–".to_owned(), |value| format!("{} {}", significant(value), finding.unit))
        };
        let cells = [
            word(finding.outcome).to_owned(),
            finding.case.clone(),
            limit(finding, &findings.limits),
            figure(finding.baseline),
            figure(finding.value),
            change(finding),
        ];
        table.add_row(cells.iter().map(|cell| printable(cell)));
    }
    align_right(&mut table, &[3, 4]);
    indented(&table)
}
