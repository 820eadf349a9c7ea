//! The shelf for a terminal, plain UTF-8 without colours: its contents, and one publication with its conclusions beside
//! what its own figures support. Every text from outside is passed through `printable`.

use crate::analyse::findings::groups::{by_key, distinct};
use crate::analyse::imported::words::rate;
use crate::analyse::shelf::findings::{
    ConclusionFinding, PublishedCase, RemarkWeight, RuleRemark, ShelfFindings, Support,
};
use crate::report::layout::{ABSENT, TextTable};
use crate::report::text::{paragraph, section};
use std::collections::BTreeSet;

/// Most facts shown as columns: those that differ between cases.
const MOST_FACTS: usize = 4;
/// Facts shown below the table, because they are long or name places.
const NO_COLUMN: [&str; 3] = ["stack.mount", "stack.devices", "device.source"];

/// Contents of the shelf, a row per publication.
pub fn list(all: &[ShelfFindings]) -> String {
    let rows = all.iter().map(|found| {
        let figures: usize = found.cases.iter().map(|case| case.figures).sum();
        let date = found.origin.published.clone().unwrap_or_else(|| ABSENT.to_owned());
        let figures = if figures == 0 { "design".to_owned() } else { figures.to_string() };
        [found.name.clone(), date, found.varied.clone(), found.cases.len().to_string(), figures]
    });
    let table = TextTable::new(["name", "date", "what varied", "cases", "figures"], &[3, 4]).rows(rows);
    let note = paragraph("", "`pgstrata shelf show NAME` checks its conclusions against its own figures.");
    format!("{}\n{note}", table.shown())
}

/// One publication.
pub fn show(found: &ShelfFindings) -> String {
    let mut text = origin(found);
    text.push_str("\nCases\n");
    text.push_str(&cases(&found.cases));
    text.push_str(&case_caveats(&found.cases));
    text + &section("Conclusions, checked against its own figures", found.conclusions.iter().map(conclusion))
        + &remarks(&found.remarks)
        + &section("Caveats", found.caveats.iter().map(|text| paragraph("  - ", text)))
        + &section("Not published", found.unknown.iter().map(|text| paragraph("  - ", text)))
}

/// Title, author, date, machine, procedure.
fn origin(found: &ShelfFindings) -> String {
    let of = &found.origin;
    let title = of.title.as_ref().map_or_else(String::new, |title| format!(": {title}"));
    let language = of.language.as_ref().map_or_else(String::new, |language| format!(", in {language}"));
    let published = of.published.as_ref().map(|date| format!("{date}{language}"));
    let lines = [
        ("author", of.author.as_deref()),
        ("published", published.as_deref()),
        ("measured", of.measured.as_deref()),
        ("machine", of.machine.as_deref()),
        ("storage", of.storage.as_deref()),
        ("system", of.system.as_deref()),
        ("PostgreSQL", of.postgresql.as_deref()),
        ("varied", Some(&found.varied)),
        ("procedure", Some(&found.procedure)),
    ];
    let known = lines.into_iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)));
    let known = known.map(|(name, value)| paragraph(&format!("  {name:<11} "), value));
    std::iter::once(paragraph("", &format!("{}{title}", found.name))).chain(known).collect()
}

/// Table of cases: the facts that differ, then the figures.
fn cases(cases: &[PublishedCase]) -> String {
    let keys: BTreeSet<&String> = cases.iter().flat_map(|case| case.facts.keys()).collect();
    let differing = keys.into_iter().filter(|key| {
        let first = cases.first().and_then(|case| case.facts.get(*key));
        !NO_COLUMN.contains(&key.as_str()) && cases.iter().any(|case| case.facts.get(*key) != first)
    });
    let facts: Vec<&String> = differing.take(MOST_FACTS).collect();
    let figures = distinct(cases.iter().flat_map(|case| &case.main).map(|it| (it.name.as_str(), it.unit.as_str())));
    let mut header = vec!["case".to_owned()];
    header.extend(facts.iter().map(|key| (*key).clone()));
    let numbers: Vec<usize> = (header.len()..=header.len() + figures.len()).collect();
    header.extend(figures.iter().map(|(name, unit)| format!("{name}\n{unit}")));
    header.push("read".to_owned());
    let rows = cases.iter().map(|case| {
        let mut cells = vec![case.name.clone()];
        cells.extend(facts.iter().map(|key| case.facts.get(*key).cloned().unwrap_or_default()));
        cells.extend(figures.iter().map(|(name, unit)| {
            let found = case.main.iter().find(|it| it.name == *name && it.unit == *unit);
            found.map_or_else(String::new, |it| rate(it.value))
        }));
        cells.push(if case.figures == 0 { String::new() } else { case.figures.to_string() });
        cells
    });
    let table = TextTable::new(header, &numbers).rows(rows);
    let note = match cases.iter().any(|case| case.figures > 0) {
        true => "Rates: one synced 8 kB write by its method, or transactions. Read: number of values.",
        false => "Only the design was published, no figures.",
    };
    table.shown() + &paragraph("  ", note)
}

/// Source and caveats of each case that has any.
fn case_caveats(cases: &[PublishedCase]) -> String {
    let caveats = cases.iter().filter_map(|case| {
        let source = case.facts.get("device.source").map(|source| format!("from {source}"));
        let all: Vec<String> = source.into_iter().chain(case.caveats.iter().cloned()).collect();
        (!all.is_empty()).then(|| paragraph("  - ", &format!("{}: {}", case.name, all.join("; "))))
    });
    caveats.collect()
}

fn conclusion(found: &ConclusionFinding) -> String {
    let mut text = paragraph("  - ", &format!("Claim: {}.", found.says));
    text.push_str(&paragraph("    ", &format!("{}.", support_text(found))));
    let compared = found.comparisons.iter().map(|it| match it.support {
        Support::Contradicted => format!("{} (opposite direction)", it.sentence),
        _ => it.sentence.clone(),
    });
    let sentences = compared.chain(found.because.iter().cloned());
    sentences.for_each(|sentence| text.push_str(&paragraph("      · ", &sentence)));
    text
}

/// Support by the figures, in capitals as a heading.
fn support_text(found: &ConclusionFinding) -> &'static str {
    match found.support {
        Support::Shown => "SUPPORTED by its figures",
        Support::PointsThatWay => "NOT PROVEN, its figures point that way",
        Support::NotShown if found.comparisons.iter().all(|it| it.ratio > 1.0) => {
            "NOT PROVEN, its figures agree, which may be chance"
        }
        Support::NotShown => "NOT SUPPORTED by its figures",
        Support::Contradicted => "CONTRADICTED by its figures",
        Support::CannotBeTold => "UNDECIDED: not enough was published",
    }
}

/// Remarks of the rules, a heading per weight, the most severe first.
pub fn remarks(all: &[RuleRemark]) -> String {
    let by_weight = by_key(all.iter().map(|remark| (remark.weight, remark))).into_iter();
    let sections = by_weight.map(|(weight, remarks)| {
        let heading = match weight {
            RemarkWeight::Contradiction => "Inconsistencies",
            RemarkWeight::Suspicion => "Misleading figures",
            RemarkWeight::Information => "Other findings",
        };
        let lines = remarks.iter().map(|remark| paragraph("  - ", &format!("{}: {}", remark.case, remark.sentence)));
        section(heading, lines)
    });
    sections.collect()
}
