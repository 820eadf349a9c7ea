//! Shared parts of the terminal text and page of a comparison: wording of cells, and the page's tables.

use super::super::table::{Cell, Table, TableColumn};
use super::super::words::{class_title, estimate_text, fields};
use crate::analyse::compare::findings::{
    Comparison, ComparisonFindings, Estimate, FactDifference, MeasureRow, Medium, PairFinding, RatioOutcome,
    SideFinding, SideOrigin,
};
use crate::analyse::compare::judge::{medium_word, reason_title};
use crate::analyse::findings::groups::by_key;
use crate::analyse::findings::names;

/// Text of a cell without a comparison; the reasons are given below the table.
pub(super) const NOT_COMPARED: &str = "not compared";
/// Most measures named in a refusal.
const MOST_MEASURES: usize = 4;

/// Rows grouped by family, in order.
pub(super) fn families(pair: &PairFinding) -> Vec<(&str, Vec<&MeasureRow>)> {
    by_key(pair.rows.iter().map(|row| (row.family.as_str(), row)))
}

/// Name of a row below the heading of its family; with the unit if that differs from the rate's.
pub(super) fn row_label(row: &MeasureRow) -> String {
    let name = row.measure.strip_prefix(&row.family).unwrap_or(&row.measure).trim_start_matches('/');
    let unit = if row.more_is_better || row.unit.is_empty() { String::new() } else { format!(" ({})", row.unit) };
    format!("{}{unit}", name.replace('/', ", "))
}

/// A family as a heading: `pg_test_fsync, one write (ops/s)`.
pub(super) fn family_title(family: &str, rows: &[&MeasureRow]) -> String {
    let unit = rows.iter().find(|row| row.more_is_better).map(|row| format!(" ({})", row.unit)).unwrap_or_default();
    let title = match family {
        "wal" => "WAL, as written by a server".to_owned(),
        "newer" => "methods not used by PostgreSQL".to_owned(),
        other => other.replace('/', ", "),
    };
    format!("{title}{unit}")
}

/// A figure and its interval, if any; of two runs, both figures.
pub(super) fn value(estimate: &Estimate, runs: &[f64]) -> (String, String) {
    if !runs.is_empty() {
        let figures = runs.iter().map(|run| estimate_text(&Estimate::of(*run, None, 1)).0);
        return (figures.collect::<Vec<_>>().join(", "), String::new());
    }
    let (figure, interval) = estimate_text(estimate);
    (figure, if estimate.low.is_some() { interval } else { String::new() })
}

/// A ratio, its interval and its outcome: `3.4×`, `3.1–3.7`, `faster`.
pub(super) fn ratio(comparison: &Comparison) -> (String, String, &'static str) {
    let (figure, interval) = value(&ratio_estimate(comparison), &[]);
    (format!("{figure}×"), interval, outcome(comparison.outcome).0)
}

fn ratio_estimate(comparison: &Comparison) -> Estimate {
    Estimate::of(comparison.ratio, comparison.low.zip(comparison.high), 1)
}

/// An outcome in words, and its style on the page.
fn outcome(outcome: RatioOutcome) -> (&'static str, &'static str) {
    match outcome {
        RatioOutcome::Faster => ("faster", "faster"),
        RatioOutcome::Slower => ("slower", "slower"),
        RatioOutcome::Lower => ("lower", "faster"),
        RatioOutcome::Higher => ("higher", "slower"),
        RatioOutcome::Undecided => ("undecided", ""),
        RatioOutcome::NotRepeated => ("not repeated", "quiet"),
        RatioOutcome::NoInterval => ("no interval", "quiet"),
    }
}

/// One line about a side: origin, machine, durability.
pub(super) fn about(side: &SideFinding) -> String {
    let mut parts = vec![origin(side.origin).to_owned()];
    parts.extend(side.facts.get("stack.filesystem").cloned());
    parts.extend((side.medium != Medium::Unknown).then(|| medium_word(side.medium).to_owned()));
    parts.extend(side.facts.get("host.system").cloned());
    if let Some(durability) = &side.durability {
        parts.push(format!("{}: {}", class_title(durability.class).to_lowercase(), durability.reason));
    }
    parts.join("; ")
}

fn origin(origin: SideOrigin) -> &'static str {
    match origin {
        SideOrigin::Run => "a run of pgstrata",
        SideOrigin::Probe => "a probe of pgstrata",
        SideOrigin::Imported => "imported",
    }
}

/// The first few names, and the number of others.
pub(super) fn some_of(measures: &[String]) -> String {
    names::first(measures.iter(), MOST_MEASURES, "; ", "; ")
}

/// Facts known of some sides only: the marks of those sides, and the keys.
pub(super) fn known_of(findings: &ComparisonFindings) -> Vec<(String, Vec<String>)> {
    by_key(findings.facts_not_told.iter().map(|fact| {
        let known = fact.values.iter().zip(&findings.sides).filter(|(value, _)| value.is_some());
        let who = known.map(|(_, side)| side.mark.as_str()).collect::<Vec<_>>().join(", ");
        (who, fact.key.clone())
    }))
}

pub(super) fn pair_table(findings: &ComparisonFindings, index: usize, pair: &PairFinding) -> Table {
    let (side, reference) = (&findings.sides[pair.side].mark, &findings.sides[pair.against].mark);
    let ratio_csv = ["ratio", "ratio low", "ratio high"];
    let columns = vec![
        TableColumn::text("measure").csv(&["measure", "unit"]),
        TableColumn::bounded(reference),
        TableColumn::bounded(side),
        TableColumn::number(&format!("{side} / {reference}"), "").csv(&ratio_csv),
        TableColumn::text("says").csv(&["says", "how"]),
    ];
    let mut table =
        Table::new(format!("pair-{index}"), format!("Figures and ratios, {side} against {reference}"), columns);
    for (family, rows) in families(pair) {
        table.open_group(Some(family_title(family, &rows)), None, Vec::new());
        rows.into_iter().for_each(|row| table.push(pair_cells(row)));
    }
    table
}

fn number(estimate: &Estimate, runs: &[f64]) -> Cell {
    let (figure, interval) = value(estimate, runs);
    Cell::text(figure).aside(interval).csv(fields(Some(estimate)))
}

fn pair_cells(row: &MeasureRow) -> Vec<Cell> {
    let (ratio_cell, says) = match &row.comparison {
        Some(comparison) => {
            let (figure, interval, says) = ratio(comparison);
            let estimate = ratio_estimate(comparison);
            (
                Cell::text(figure).aside(interval).csv(fields(Some(&estimate))),
                Cell::text(says)
                    .aside(comparison.how.trim_start_matches("no interval: "))
                    .csv(vec![says.to_owned(), comparison.how.clone()])
                    .style(outcome(comparison.outcome).1),
            )
        }
        None => {
            let why = row.refused.map(reason_title).unwrap_or_default().to_owned();
            let none = Cell::none(3).style("absent");
            (none, Cell::text(NOT_COMPARED).csv(vec![NOT_COMPARED.to_owned(), why]).style("quiet"))
        }
    };
    let name = Cell::text(row_label(row)).csv(vec![row.measure.clone(), row.unit.clone()]);
    vec![name, number(&row.reference, &row.reference_runs), number(&row.value, &row.value_runs), ratio_cell, says]
}

pub(super) fn sides_table(findings: &ComparisonFindings) -> Table {
    Table::over("sides", "Where each figure comes from", &findings.sides).columns(&[
        (TableColumn::text(""), &|side| Cell::text(&side.mark)),
        (TableColumn::text("side"), &|side| Cell::text(&side.label).style("name")),
        (TableColumn::text("what it is"), &|side| Cell::text(about(side)).style("reason")),
        (TableColumn::number("figures", ""), &|side| Cell::text(side.measures.to_string())),
    ])
}

pub(super) fn refused_table(findings: &ComparisonFindings) -> Table {
    let refused = findings.refused.iter().map(|it| (it.words.clone(), &it.measures));
    let alone = findings.alone.iter().map(|it| (&findings.sides[it.side].mark, &it.measures));
    let alone = alone.map(|(mark, measures)| (format!("only {mark} measured it"), measures));
    Table::over("refused", "Refusals", refused.chain(alone)).columns(&[
        (TableColumn::text("why not"), &|(why, _)| Cell::text(why).style("reason")),
        (TableColumn::text("measures"), &|(_, measures)| {
            Cell::text(some_of(measures)).csv(vec![measures.join("; ")]).style("reason")
        }),
    ])
}

pub(super) fn facts_table(findings: &ComparisonFindings, id: &str, title: &str, facts: &[FactDifference]) -> Table {
    let marks = findings.sides.iter().map(|side| TableColumn::text(&side.mark));
    let columns = std::iter::once(TableColumn::text("fact")).chain(marks).collect();
    let rows = facts.iter().map(|fact| {
        let values = fact.values.iter().map(|value| match value {
            Some(value) => Cell::text(value).style("reason"),
            None => Cell::text("unknown").csv(vec![String::new()]).style("absent"),
        });
        std::iter::once(Cell::text(&fact.key).style("name")).chain(values).collect()
    });
    Table::new(id, title, columns).rows(rows)
}

/// Merges equal texts about several sides into one, with the sides' marks.
pub(super) fn grouped<'a>(said: impl Iterator<Item = (&'a str, String)>) -> Vec<(String, String)> {
    by_key(said.map(|(mark, text)| (text, mark))).into_iter().map(|(text, marks)| (text, marks.join(", "))).collect()
}
