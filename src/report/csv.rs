//! One row for each case and measure, full precision, for spreadsheets and data frames.

use super::Renderer;
use super::table::{Cell, Table, TableColumn};
use super::words::class_key;
use crate::analyse::findings::{BaselineComparison, CaseFinding, Estimate, Findings, Latency, MeasureFinding, RankRow};
use crate::error::{Context, Result};
use std::collections::BTreeSet;
use std::io::Write;

/// `--format csv`.
pub(super) struct Csv;

impl Renderer for Csv {
    fn extension(&self) -> &'static str {
        "csv"
    }

    fn render(&self, findings: &Findings, out: &mut dyn Write) -> Result<()> {
        let text = measures_table(findings).to_csv();
        out.write_all(text.as_bytes()).or_host(|| "write the report as CSV".to_owned())
    }
}

/// Headings after the axes.
const FIELDS: [&str; 34] = [
    "measure",
    "unit",
    "ranking",
    "rank_in_class",
    "rate_per_s",
    "rate_per_s_low",
    "rate_per_s_high",
    "trials",
    "ranked_per_s",
    "ranked_per_s_low",
    "ranked_per_s_high",
    "ranked_trials",
    "trial_per_s_least",
    "trial_per_s_most",
    "baseline",
    "ratio",
    "ratio_low",
    "ratio_high",
    "no_difference_seen",
    "would_have_shown",
    "caveat",
    "durability_class",
    "durability_reason",
    "latency_us_mean",
    "latency_us_p50",
    "latency_us_p95",
    "latency_us_p99",
    "latency_us_p999",
    "latency_us_max",
    "done",
    "failed",
    "skipped",
    "late",
    "unavailable",
];

fn measures_table(findings: &Findings) -> Table {
    let axes: BTreeSet<&String> = findings.cases.iter().flat_map(|case| case.axes.keys()).collect();
    let mut columns = vec![TableColumn::text("case")];
    columns.extend(axes.iter().map(|axis| TableColumn::text(&format!("axis_{axis}"))));
    columns.extend(FIELDS.map(TableColumn::text));
    let mut table = Table::new("measures", "Measures", columns);
    for case in &findings.cases {
        for measure in &case.measures {
            let mut row = vec![case.id.clone()];
            row.extend(axes.iter().map(|axis| case.axes.get(*axis).cloned().unwrap_or_default()));
            row.extend(fields(findings, case, measure));
            table.push(row.into_iter().map(Cell::text).collect());
        }
    }
    table
}

fn fields(findings: &Findings, case: &CaseFinding, measure: &MeasureFinding) -> Vec<String> {
    let (ranking, row) = ranked(findings, case, measure).map_or((None, None), |(title, row)| (Some(title), Some(row)));
    let comparison = row.and_then(|row| row.comparison.as_ref());
    let mut fields = vec![
        measure.name.clone(),
        measure.unit.clone(),
        ranking.unwrap_or_default().to_owned(),
        text(row.map(|row| row.rank)),
    ];
    fields.extend(estimate(measure.rate.as_ref()));
    fields.extend(estimate(row.map(|row| &row.rate)));
    let trials = || row.iter().flat_map(|row| &row.trials).map(|trial| trial.rate);
    fields.extend([text(trials().reduce(f64::min)), text(trials().reduce(f64::max))]);
    fields.extend(compared(comparison));
    fields.push(class_key(case.durability.class).to_owned());
    fields.push(case.durability.reason.clone());
    fields.extend(latencies(measure.latency.as_ref()));
    fields.extend([measure.done, measure.failed, measure.skipped, measure.late].map(|count| count.to_string()));
    fields.push(measure.unavailable.clone().unwrap_or_default());
    fields
}

/// Where a measure of a case is ranked: the ranking's title and the row.
fn ranked<'a>(findings: &'a Findings, case: &CaseFinding, measure: &MeasureFinding) -> Option<(&'a str, &'a RankRow)> {
    let rankings = findings.rankings.iter().filter(|ranking| ranking.measure == measure.name);
    rankings
        .flat_map(|ranking| {
            ranking.classes.iter().flat_map(|class| &class.rows).map(|row| (ranking.title.as_str(), row))
        })
        .find(|(_, row)| row.case == case.id)
}

fn estimate(estimate: Option<&Estimate>) -> [String; 4] {
    [
        text(estimate.map(|e| e.value)),
        text(estimate.and_then(|e| e.low)),
        text(estimate.and_then(|e| e.high)),
        text(estimate.map(|e| e.trials)),
    ]
}

fn compared(comparison: Option<&BaselineComparison>) -> [String; 7] {
    [
        comparison.map(|c| c.baseline.clone()).unwrap_or_default(),
        text(comparison.map(|c| c.ratio.value)),
        text(comparison.and_then(|c| c.ratio.low)),
        text(comparison.and_then(|c| c.ratio.high)),
        text(comparison.map(|c| c.no_difference_seen)),
        text(comparison.and_then(|c| c.would_have_shown)),
        comparison.and_then(|c| c.caveat.clone()).unwrap_or_default(),
    ]
}

fn latencies(latency: Option<&Latency>) -> [String; 6] {
    [
        text(latency.map(|l| l.mean_us)),
        text(latency.map(|l| l.p50_us)),
        text(latency.map(|l| l.p95_us)),
        text(latency.map(|l| l.p99_us)),
        text(latency.map(|l| l.p999_us)),
        text(latency.map(|l| l.max_us)),
    ]
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
