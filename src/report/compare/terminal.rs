//! A comparison for a terminal, plain UTF-8 without colours. Every text from outside is passed through `printable`,
//! because a terminal obeys control characters.

use super::super::terminal::{align_right, indented, plain_table};
use super::tables::{NOT_COMPARED, about, families, family_title, grouped, known_of, ratio, row_label, some_of, value};
use crate::analyse::compare::findings::{ComparisonFindings, PairFinding, Row};
use crate::report::text::{paragraph, printable};

/// The whole report.
pub fn terminal(findings: &ComparisonFindings) -> String {
    let mut text: String = findings.answer.lines().map(|line| paragraph("", line)).collect();
    text.push('\n');
    for side in &findings.sides {
        text.push_str(&paragraph(&format!("{}  ", side.mark), &side.label));
    }
    findings.pairs.iter().for_each(|pair| text.push_str(&self::pair(findings, pair)));
    text.push_str(&refused(findings));
    text.push_str("\nSides\n");
    for side in &findings.sides {
        text.push_str(&paragraph(&format!("  {}  ", side.mark), &about(side)));
    }
    text.push_str(&facts(findings));
    text.push_str(&caveats(findings));
    text
}

fn pair(findings: &ComparisonFindings, pair: &PairFinding) -> String {
    if pair.rows.is_empty() {
        return String::new();
    }
    let (side, reference) = (&findings.sides[pair.side].mark, &findings.sides[pair.against].mark);
    let mut text = format!("\n{side} against {reference}\n");
    pair.caveat.iter().for_each(|caveat| text.push_str(&paragraph("  ", caveat)));
    let mut table = plain_table();
    table.set_header([String::new(), reference.clone(), side.clone(), format!("{side} / {reference}")]);
    for (family, rows) in families(pair) {
        table.add_between(paragraph(" ", &family_title(family, &rows)));
        rows.iter().for_each(|row| table.add_row(cells(row)));
    }
    align_right(&mut table, &[1, 2]);
    text + &indented(&table)
}

fn cells(row: &Row) -> Vec<String> {
    let with_interval = |(figure, interval): (String, String)| {
        if interval.is_empty() { figure } else { format!("{figure} ({interval})") }
    };
    let says = match &row.comparison {
        Some(comparison) => {
            let (figure, interval, says) = ratio(comparison);
            format!("{} {says}", with_interval((figure, interval)))
        }
        None => NOT_COMPARED.to_owned(),
    };
    let figure = |estimate, runs| with_interval(value(estimate, runs));
    let (reference, value) = (figure(&row.reference, &row.reference_runs), figure(&row.value, &row.value_runs));
    let cells = [row_label(row), reference, value, says];
    cells.iter().map(|cell| printable(cell)).collect()
}

fn refused(findings: &ComparisonFindings) -> String {
    let left_out = || findings.sides.iter().filter(|side| !side.left_out.is_empty());
    if findings.refused.is_empty() && findings.alone.is_empty() && left_out().next().is_none() {
        return String::new();
    }
    let mut text = "\nNot compared, and why\n".to_owned();
    for refusal in &findings.refused {
        text.push_str(&paragraph("  - ", &refusal.words));
        text.push_str(&paragraph("      ", &some_of(&refusal.measures)));
    }
    for alone in &findings.alone {
        let mark = &findings.sides[alone.side].mark;
        text.push_str(&paragraph("  - ", &format!("only {mark} measured {}", some_of(&alone.measures))));
    }
    let outputs = left_out().map(|side| (side.mark.as_str(), side.left_out.join(", ")));
    for (outputs, marks) in grouped(outputs) {
        text.push_str(&paragraph(
            "  - ",
            &format!("{marks}: {outputs}: only pg_test_fsync, summaries of pgbench and its logs are compared"),
        ));
    }
    text
}

fn facts(findings: &ComparisonFindings) -> String {
    if findings.facts_that_differ.is_empty() && findings.facts_not_told.is_empty() {
        return String::new();
    }
    let mut text = "\nFacts that differ: the candidate causes\n".to_owned();
    if findings.facts_that_differ.is_empty() {
        text.push_str(&paragraph("  ", "None, of the facts known for more than one side."));
    }
    for fact in &findings.facts_that_differ {
        text.push_str(&paragraph("  ", &fact.key));
        for (side, value) in findings.sides.iter().zip(&fact.values) {
            text.push_str(&paragraph(&format!("    {}  ", side.mark), value.as_deref().unwrap_or("unknown")));
        }
    }
    for (who, keys) in known_of(findings) {
        text.push_str(&paragraph("  ", &format!("Known for {who} only: {}.", keys.join(", "))));
    }
    text
}

fn caveats(findings: &ComparisonFindings) -> String {
    let of_sides = || findings.sides.iter().flat_map(|side| side.caveats.iter().map(|caveat| (&side.mark, caveat)));
    if findings.caveats.is_empty() && of_sides().next().is_none() {
        return String::new();
    }
    let mut text = "\nCaveats\n".to_owned();
    findings.caveats.iter().for_each(|caveat| text.push_str(&paragraph("  - ", &format!("{caveat}."))));
    for (caveat, marks) in grouped(of_sides().map(|(mark, caveat)| (mark.as_str(), caveat.clone()))) {
        text.push_str(&paragraph("  - ", &format!("{marks}: {caveat}")));
    }
    text
}
