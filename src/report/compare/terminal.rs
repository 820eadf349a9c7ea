//! A comparison for a terminal, plain UTF-8 without colours. Every text from outside is passed through `printable`,
//! because a terminal obeys control characters.

use super::tables::{NOT_COMPARED, about, families, family_title, grouped, known_of, ratio, row_label, some_of, value};
use crate::analyse::compare::findings::{ComparisonFindings, MeasureRow, PairFinding};
use crate::report::layout::TextTable;
use crate::report::text::{paragraph, section};

/// Facts that explain most differences.
const DECIDING: [&str; 7] = [
    "host.kernel",
    "mount.options",
    "postgresql.shared_buffers",
    "postgresql.version",
    "postgresql.wal_sync_method",
    "stack.device0.write_cache",
    "stack.filesystem",
];
/// Most facts named that only some sides have.
const MOST_FACTS: usize = 8;

/// The whole report.
pub fn terminal(findings: &ComparisonFindings) -> String {
    let mut text: String = findings.answer.lines().map(|line| paragraph("", line)).collect();
    text.push('\n');
    text.extend(findings.sides.iter().map(|side| paragraph(&format!("{}  ", side.mark), &side.label)));
    findings.pairs.iter().for_each(|pair| text.push_str(&self::pair(findings, pair)));
    text.push_str(&refused(findings));
    text.push_str("\nSides\n");
    text.extend(findings.sides.iter().map(|side| paragraph(&format!("  {}  ", side.mark), &about(side))));
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
    let titles = [String::new(), reference.clone(), side.clone(), format!("{side} / {reference}")];
    let mut table = TextTable::new(titles, &[1, 2]);
    for (family, rows) in families(pair) {
        table.add_between(paragraph(" ", &family_title(family, &rows)));
        rows.iter().for_each(|row| table.add_row(cells(row)));
    }
    text + &table.shown()
}

fn cells(row: &MeasureRow) -> [String; 4] {
    let says = match &row.comparison {
        Some(comparison) => {
            let (figure, interval, says) = ratio(comparison);
            format!("{} {says}", with_interval((figure, interval)))
        }
        None => NOT_COMPARED.to_owned(),
    };
    let [reference, figure] = [(&row.reference, &row.reference_runs), (&row.value, &row.value_runs)]
        .map(|(estimate, runs)| with_interval(value(estimate, runs)));
    [row_label(row), reference, figure, says]
}

fn with_interval((figure, interval): (String, String)) -> String {
    if interval.is_empty() { figure } else { format!("{figure} ({interval})") }
}

fn refused(findings: &ComparisonFindings) -> String {
    let refused = findings.refused.iter();
    let refused = refused.map(|it| paragraph("  - ", &it.words) + &paragraph("      ", &some_of(&it.measures)));
    let alone = findings.alone.iter().map(|alone| {
        let mark = &findings.sides[alone.side].mark;
        paragraph("  - ", &format!("only {mark} measured {}", some_of(&alone.measures)))
    });
    let left_out = findings.sides.iter().filter(|side| !side.left_out.is_empty());
    let left_out = grouped(left_out.map(|side| (side.mark.as_str(), side.left_out.join(", ")))).into_iter();
    let left_out = left_out.map(|(outputs, marks)| {
        let why = "only pg_test_fsync, summaries of pgbench and its logs are compared";
        paragraph("  - ", &format!("{marks}: {outputs}: {why}"))
    });
    section("Not compared, and why", refused.chain(alone).chain(left_out))
}

fn facts(findings: &ComparisonFindings) -> String {
    let (differing, unknown) = (&findings.facts_that_differ, &findings.facts_not_told);
    let none = "None, of the facts known for more than one side.";
    let none = (differing.is_empty() && !unknown.is_empty()).then(|| paragraph("  ", none));
    let differing = differing.iter().map(|fact| {
        let values = findings.sides.iter().zip(&fact.values);
        let values = values
            .map(|(side, value)| paragraph(&format!("    {}  ", side.mark), value.as_deref().unwrap_or("unknown")));
        paragraph("  ", &fact.key) + &values.collect::<String>()
    });
    let known = known_of(findings).into_iter();
    let known = known.map(|(who, keys)| paragraph("  ", &format!("Known for {who} only: {}.", most_telling(keys))));
    section("Facts that differ: the candidate causes", none.into_iter().chain(differing).chain(known))
}

/// Facts that decide most, first, and few others.
fn most_telling(mut keys: Vec<String>) -> String {
    keys.sort_by_key(|key| !DECIDING.contains(&key.as_str()));
    let others = keys.split_off(keys.len().min(MOST_FACTS)).len();
    let others = if others > 0 { format!(" and {others} others (--json)") } else { String::new() };
    keys.join(", ") + &others
}

fn caveats(findings: &ComparisonFindings) -> String {
    let own = findings.caveats.iter().map(|caveat| paragraph("  - ", &format!("{caveat}.")));
    let of_sides =
        findings.sides.iter().flat_map(|side| side.caveats.iter().map(|it| (side.mark.as_str(), it.clone())));
    let of_sides = grouped(of_sides).into_iter();
    section("Caveats", own.chain(of_sides.map(|(caveat, marks)| paragraph("  - ", &format!("{marks}: {caveat}")))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_one_side_are_cut_to_those_that_decide() {
        let mut keys: Vec<String> = (0..20).map(|n| format!("host.a{n}")).collect();
        keys.push("stack.filesystem".to_owned());
        let said = most_telling(keys);
        assert!(said.starts_with("stack.filesystem, host.a0, ") && said.ends_with(" and 13 others (--json)"), "{said}");
        assert_eq!(most_telling(vec!["b".to_owned()]), "b");
    }
}
