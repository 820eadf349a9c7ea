//! The shelf for a terminal, plain UTF-8 without colours: its contents, and one publication with its conclusions beside
//! what its own figures support. Every text from outside is passed through `printable`.

use crate::analyse::imported::words::rate;
use crate::analyse::shelf::findings::{
    ClaimComparison, ConclusionFinding, PublishedCase, RemarkWeight, RuleRemark, ShelfFindings, Support,
};
use crate::report::layout::TextTable;
use crate::report::text::{paragraph, printable, section};
use std::collections::BTreeSet;

/// Most facts shown as columns: those that differ between cases.
const MOST_FACTS: usize = 4;
/// Facts shown below the table, because they are long or name places.
const NO_COLUMN: [&str; 3] = ["stack.mount", "stack.devices", "device.source"];

/// Contents of the shelf, a row per publication.
pub fn list(all: &[ShelfFindings]) -> String {
    let mut table = TextTable::default();
    table.set_header(["name", "date", "what varied", "cases", "figures"]);
    for found in all {
        let figures: usize = found.cases.iter().map(|case| case.figures).sum();
        let date = found.origin.published.clone().unwrap_or_else(|| "–".to_owned());
        let figures = if figures == 0 { "design".to_owned() } else { figures.to_string() };
        let cells = [found.name.clone(), date, found.varied.clone(), found.cases.len().to_string(), figures];
        table.add_row(cells.iter().map(|cell| printable(cell)));
    }
    table.align_right(&[3, 4]);
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
    let mut text = paragraph("", &format!("{}{title}", found.name));
    let mut line = |name: &str, value: Option<&str>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            text.push_str(&paragraph(&format!("  {name:<11} "), value));
        }
    };
    line("author", of.author.as_deref());
    let language = of.language.as_ref().map_or_else(String::new, |language| format!(", in {language}"));
    line("published", of.published.as_ref().map(|date| format!("{date}{language}")).as_deref());
    line("measured", of.measured.as_deref());
    line("machine", of.machine.as_deref());
    line("storage", of.storage.as_deref());
    line("system", of.system.as_deref());
    line("PostgreSQL", of.postgresql.as_deref());
    line("varied", Some(&found.varied));
    line("procedure", Some(&found.procedure));
    text
}

/// Table of cases: the facts that differ, then the figures.
fn cases(cases: &[PublishedCase]) -> String {
    let keys: BTreeSet<&String> = cases.iter().flat_map(|case| case.facts.keys()).collect();
    let differs = |key: &&&String| {
        let first = cases.first().and_then(|case| case.facts.get(**key));
        !NO_COLUMN.contains(&key.as_str()) && cases.iter().any(|case| case.facts.get(**key) != first)
    };
    let facts: Vec<&String> = keys.iter().filter(differs).copied().take(MOST_FACTS).collect();
    let mut figures: Vec<(&str, &str)> = Vec::new();
    for figure in cases.iter().flat_map(|case| &case.main) {
        if !figures.contains(&(&figure.name, &figure.unit)) {
            figures.push((&figure.name, &figure.unit));
        }
    }
    let mut table = TextTable::default();
    let head = |(name, unit): &(&str, &str)| format!("{name}\n{unit}");
    let header = std::iter::once("case".to_owned()).chain(facts.iter().map(|key| (*key).clone()));
    table.set_header(header.chain(figures.iter().map(head)).chain(["read".to_owned()]));
    for case in cases {
        let fact = |key: &&String| case.facts.get(*key).cloned().unwrap_or_default();
        let figure = |(name, unit): &(&str, &str)| {
            let found = case.main.iter().find(|it| it.name == *name && it.unit == *unit);
            found.map_or_else(String::new, |it| rate(it.value))
        };
        let cells = std::iter::once(case.name.clone()).chain(facts.iter().map(fact)).chain(figures.iter().map(figure));
        let read = if case.figures == 0 { String::new() } else { case.figures.to_string() };
        table.add_row(cells.chain([read]).map(|cell| printable(&cell)));
    }
    let first_number = 1 + facts.len();
    table.align_right(&(first_number..=first_number + figures.len()).collect::<Vec<_>>());
    let note = match cases.iter().any(|case| case.figures > 0) {
        true => "Rates: one synced 8 kB write by its method, or transactions. Read: number of values.",
        false => "Only the design was published, no figures.",
    };
    table.shown() + &paragraph("  ", note)
}

/// Source and caveats of each case that has any.
fn case_caveats(cases: &[PublishedCase]) -> String {
    let of = |case: &PublishedCase| {
        let source = case.facts.get("device.source").map(|source| format!("from {source}"));
        let all: Vec<String> = source.into_iter().chain(case.caveats.iter().cloned()).collect();
        (!all.is_empty()).then(|| paragraph("  - ", &format!("{}: {}", case.name, all.join("; "))))
    };
    cases.iter().filter_map(of).collect()
}

fn conclusion(found: &ConclusionFinding) -> String {
    let mut text = paragraph("  - ", &format!("Claim: {}.", found.says));
    text.push_str(&paragraph("    ", &format!("{}.", support_text(found.support))));
    let odd = |it: &ClaimComparison| if it.support == Support::Contradicted { " (opposite direction)" } else { "" };
    let compared = found.comparisons.iter().map(|it| format!("{}{}", it.sentence, odd(it)));
    let sentences = compared.chain(found.because.iter().cloned());
    sentences.for_each(|sentence| text.push_str(&paragraph("      · ", &sentence)));
    text
}

/// Support by the figures, in capitals as a heading.
fn support_text(support: Support) -> &'static str {
    match support {
        Support::Shown => "SUPPORTED by its figures",
        Support::PointsThatWay => "NOT SUPPORTED, but its figures point that way",
        Support::NotShown => "NOT SUPPORTED by its figures",
        Support::Contradicted => "CONTRADICTED by its figures",
        Support::CannotBeTold => "UNDECIDED: not enough was published",
    }
}

/// Remarks of the rules, a heading per weight, the most severe first.
pub fn remarks(all: &[RuleRemark]) -> String {
    let mut text = String::new();
    let mut last: Option<&RuleRemark> = None;
    for remark in all {
        if last.is_none_or(|last| last.weight != remark.weight) {
            text.push_str(match remark.weight {
                RemarkWeight::Contradiction => "\nInconsistencies\n",
                RemarkWeight::Suspicion => "\nMisleading figures\n",
                RemarkWeight::Information => "\nOther findings\n",
            });
        }
        text.push_str(&paragraph("  - ", &format!("{}: {}", remark.case, remark.sentence)));
        last = Some(remark);
    }
    text
}
