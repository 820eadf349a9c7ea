//! A row per case and measure, in full precision, for spreadsheets and data frames.

use super::table::{Cell, Table, TableColumn};
use super::words::{self, class_key, optional};
use crate::analyse::findings::{
    BaselineComparison, CaseFinding, Estimate, Findings, Latency, MeasureFinding, RankRow, Ranking, Verdict, names,
};
use std::collections::BTreeSet;

/// Headings after the axes.
const FIELDS: &str = "measure unit ranking ranked_by rank_in_class rate_per_s rate_per_s_low rate_per_s_high trials \
    ranked_per_s ranked_per_s_low ranked_per_s_high ranked_trials trial_per_s_least trial_per_s_most \
    baseline ratio ratio_low ratio_high outcome detectable_ratio caveat durability_class durability_reason \
    verdict verdict_reason latency_us_mean latency_us_p50 latency_us_p50_low latency_us_p50_high \
    latency_us_p50_merged latency_us_p95 latency_us_p95_low latency_us_p95_high latency_us_p95_merged \
    latency_us_p99 latency_us_p99_low latency_us_p99_high latency_us_p99_merged latency_us_p999 \
    latency_us_p999_low latency_us_p999_high latency_us_p999_merged latency_us_max fixed_rate_per_s \
    latency_limit_us log_sample in_time_share in_time_share_low in_time_share_high done failed skipped late \
    unavailable capacity_limit_us capacity_holds_per_s capacity_peak_per_s";

/// `--format csv`.
pub(super) fn measures(findings: &Findings) -> Table {
    let axes: BTreeSet<&String> = findings.cases.iter().flat_map(|case| case.axes.keys()).collect();
    let mut columns = vec![TableColumn::text("case")];
    columns.extend(names::axis_columns(&axes).iter().map(|name| TableColumn::text(name)));
    columns.extend(FIELDS.split(' ').map(TableColumn::text));
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
    let (ranking, row) =
        ranked(findings, &case.id, &measure.name).map_or((None, None), |(of, row)| (Some(of), Some(row)));
    let comparison = row.and_then(|row| row.comparison.as_ref());
    let mut fields = vec![
        measure.name.clone(),
        measure.unit.clone(),
        ranking.map(|ranking| ranking.title.clone()).unwrap_or_default(),
        ranking.map(|ranking| names::stored(&ranking.by)).unwrap_or_default(),
        optional(row.map(|row| row.rank)),
    ];
    fields.extend(estimate(measure.rate.as_ref()));
    fields.extend(estimate(row.map(|row| &row.rate)));
    let trials: Vec<f64> = row.iter().flat_map(|row| &row.trials).map(|trial| trial.rate).collect();
    fields.extend([f64::min, f64::max].map(|end| optional(trials.iter().copied().reduce(end))));
    fields.extend(compared(comparison));
    fields.push(class_key(case.durability.class).to_owned());
    fields.push(case.durability.reason.clone());
    fields.push(optional(case.verdict.as_ref().map(Verdict::short)));
    fields.push(optional(case.verdict.as_ref().map(Verdict::why)));
    fields.extend(latencies(measure.latency.as_ref()));
    fields.push(optional(case.fixed_rate));
    fields.push(optional(case.latency_limit_us));
    fields.push(optional(case.log_sample));
    let in_time = measure.in_time.filter(|_| case.latency_limit_us.is_some());
    fields.extend(words::fields(in_time.as_ref()));
    fields.extend([measure.done, measure.failed, measure.skipped, measure.late].map(|count| count.to_string()));
    fields.push(measure.unavailable.clone().unwrap_or_default());
    let capacity = case.capacity.as_ref();
    fields.push(optional(capacity.map(|capacity| capacity.limit_us)));
    fields.push(optional(capacity.and_then(|capacity| capacity.holds)));
    fields.push(optional(capacity.map(|capacity| capacity.peak)));
    fields
}

/// The first ranking of a measure of a case, and the row in it.
fn ranked<'a>(findings: &'a Findings, case: &str, measure: &str) -> Option<(&'a Ranking, &'a RankRow)> {
    let rankings = findings.rankings.iter().filter(|ranking| ranking.measure == measure);
    rankings.flat_map(|ranking| ranking.rows().map(move |row| (ranking, row))).find(|(_, row)| row.case == case)
}

fn estimate(estimate: Option<&Estimate>) -> Vec<String> {
    [words::fields(estimate), vec![optional(estimate.map(|estimate| estimate.trials))]].concat()
}

fn compared(comparison: Option<&BaselineComparison>) -> Vec<String> {
    let mut compared = vec![optional(comparison.map(|c| &c.baseline))];
    compared.extend(words::fields(comparison.map(|c| &c.ratio)));
    compared.push(optional(comparison.map(|c| c.outcome.words())));
    compared.push(optional(comparison.and_then(|c| c.detectable_ratio)));
    compared.push(optional(comparison.and_then(|c| c.caveat.as_ref())));
    compared
}

fn latencies(latency: Option<&Latency>) -> Vec<String> {
    let mut fields = vec![optional(latency.map(|l| l.mean_us))];
    for name in ["p50", "p95", "p99", "p99.9"] {
        let found = latency.and_then(|latency| latency.percentile(name));
        fields.extend(words::fields(found.and_then(|found| found.over_trials.as_ref())));
        fields.push(optional(found.and_then(|found| found.merged_us)));
    }
    fields.push(optional(latency.map(|l| l.max_us)));
    fields
}
