//! Rankings as tables: classes apart, the rate with its interval, the comparison, and what durability rests on.

use super::table::{Cell, Column, Table};
use super::words::{class_key, class_meaning, class_title, comparison_text, estimate_text};
use crate::analyse::findings::{Comparison, DurabilityClass, Estimate, RankRow, Ranking};

/// One table for each ranking, in their order.
pub(super) fn ranking_tables(rankings: &[Ranking]) -> Vec<Table> {
    rankings.iter().enumerate().map(|(i, ranking)| ranking_table(i, ranking)).collect()
}

fn ranking_table(index: usize, ranking: &Ranking) -> Table {
    let unit = &ranking.unit;
    let columns = vec![
        Column { title: "Rank".to_owned(), unit: None, numeric: true, csv: vec!["rank in class".to_owned()] },
        Column::text("Case").csv(&["case", "label"]),
        estimate_column("Rate", "rate", unit),
        Column { numeric: true, ..Column::text("Against the baseline") }.csv(&[
            "baseline",
            "ratio",
            "ratio low",
            "ratio high",
            "no difference seen",
            "comparison",
            "caveat",
        ]),
        Column::text("Durability, and why").csv(&["durability reason"]),
    ];
    let mut table = Table::new(format!("ranking-{}", index + 1), ranking.title.clone(), columns)
        .lead(&["ranking", "measure", "class"]);
    let baseline = baseline_of(ranking);
    for class in &ranking.classes {
        let key = class_key(class.class);
        let lead = vec![ranking.title.clone(), ranking.measure.clone(), key.to_owned()];
        let heading = Some(class_title(class.class).to_owned());
        table.open_group(heading, Some(class_meaning(class.class).to_owned()), key, lead);
        for row in &class.rows {
            table.push(rank_row(row, baseline));
        }
    }
    table
}

fn rank_row(row: &RankRow, baseline: Option<&str>) -> Vec<Cell> {
    let case = Cell::case(&row.label, &row.case).csv(vec![row.case.clone(), row.label.clone()]);
    // Nothing is won by losing everything: the rank of a volatile case is there, in brackets.
    let is_volatile = row.durability.class == DurabilityClass::Volatile;
    vec![
        Cell::number(Some(row.rank), |rank| if is_volatile { format!("({rank})") } else { rank.to_string() }),
        case,
        estimate_cell(Some(&row.rate), None),
        comparison_cell(row.comparison.as_ref(), baseline == Some(row.case.as_str())),
        Cell::text(row.durability.reason.clone()).style("reason"),
    ]
}

/// Id of the case that the others are compared with.
pub(super) fn baseline_of(ranking: &Ranking) -> Option<&str> {
    let rows = ranking.classes.iter().flat_map(|class| &class.rows);
    rows.filter_map(|row| row.comparison.as_ref()).map(|comparison| comparison.baseline.as_str()).next()
}

/// A column of figures with intervals.
pub(super) fn estimate_column(title: &str, name: &str, unit: &str) -> Column {
    let heading = format!("{title}, 95 % interval");
    let csv = ["", " low", " high"].map(|end| format!("{name}{end} ({unit})"));
    Column::number(&heading, unit).csv(&[&csv[0], &csv[1], &csv[2], "trials"])
}

/// A figure with its interval; `missing` says why there is none.
pub(super) fn estimate_cell(estimate: Option<&Estimate>, missing: Option<&str>) -> Cell {
    let Some(estimate) = estimate else {
        let empty = vec![String::new(); 4];
        return Cell::text("–").aside(missing.unwrap_or_default()).csv(empty).style("absent");
    };
    let (value, interval) = estimate_text(estimate);
    Cell::text(value).aside(interval).csv(vec![
        estimate.value.to_string(),
        optional(estimate.low),
        optional(estimate.high),
        estimate.trials.to_string(),
    ])
}

fn comparison_cell(comparison: Option<&Comparison>, is_baseline: bool) -> Cell {
    let Some(comparison) = comparison.filter(|_| !is_baseline) else {
        let text = if is_baseline { "baseline" } else { "–" };
        return Cell::text(text).csv(vec![String::new(); 7]).style("quiet");
    };
    let (text, interval) = comparison_text(comparison);
    let style = if comparison.no_difference_seen || comparison.caveat.is_some() { "quiet" } else { "" };
    Cell::text(text).aside(interval).remark(comparison.caveat.clone()).style(style).csv(vec![
        comparison.baseline.clone(),
        comparison.ratio.value.to_string(),
        optional(comparison.ratio.low),
        optional(comparison.ratio.high),
        comparison.no_difference_seen.to_string(),
        comparison.method.clone(),
        comparison.caveat.clone().unwrap_or_default(),
    ])
}

fn optional(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
