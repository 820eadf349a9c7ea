//! Rankings as tables, grouped by class: rate and trials, comparison with its interval, and the reason for the
//! durability class.

use super::table::{Cell, Table, TableColumn};
use super::words::{class_key, comparison_text, fields, in_ms, numbered, optional, range_text};
use crate::analyse::findings::groups::{by_key, item_of};
use crate::analyse::findings::{
    BaselineComparison, ClassRanking, DurabilityClass, RankRow, RankedBy, Ranking, Verdict,
};
use std::collections::BTreeSet;

/// One table per ranking, in order.
pub(super) fn ranking_tables(rankings: &[Ranking]) -> Vec<Table> {
    rankings.iter().enumerate().map(|(i, ranking)| ranking_table(i, ranking)).collect()
}

/// Groups rankings of one workload under the same conditions that differ only in their measure (the methods of a `sync`
/// workload): lists of indices, in the order of the rankings.
pub(super) fn kinds(rankings: &[Ranking]) -> Vec<Vec<usize>> {
    let mut kinds: Vec<Vec<usize>> = Vec::new();
    for (place, ranking) in rankings.iter().enumerate() {
        item_of(&mut kinds, |kind| is_same_by_another_measure(&rankings[kind[0]], ranking), Vec::new).push(place);
    }
    kinds
}

fn is_same_by_another_measure(one: &Ranking, other: &Ranking) -> bool {
    one.workload == other.workload && one.shared == other.shared && one.measure != other.measure
}

/// Rankings of one kind as one table, grouped by class: a row per case, a column per measure.
pub(super) fn side_by_side(rankings: &[&Ranking]) -> Table {
    let mut columns = vec![TableColumn::text("case")];
    columns.extend(rankings.iter().map(|ranking| TableColumn {
        title: ranking.measure.clone(),
        ..TableColumn::estimate(&ranking.measure, &ranking.measure, &ranking.unit)
    }));
    let caption = rankings.first().map_or_else(String::new, |first| {
        let title = first.title.replacen(&format!(", {}", first.measure), "", 1);
        format!("{title}, {} by each method", first.unit)
    });
    let mut table = Table::new("side-by-side", caption, columns);
    let classes: BTreeSet<DurabilityClass> =
        rankings.iter().flat_map(|ranking| &ranking.classes).map(|found| found.class).collect();
    for class in classes {
        let found: Vec<Option<&ClassRanking>> =
            rankings.iter().map(|ranking| ranking.classes.iter().find(|found| found.class == class)).collect();
        let rows = found.iter().flatten().flat_map(|class| &class.rows);
        let cases = by_key(rows.map(|row| (&row.case, &row.label)));
        if cases.is_empty() {
            continue;
        }
        table.open_class(class, Vec::new());
        for (case, labels) in cases {
            let mut cells = vec![Cell::case(labels[0], case)];
            cells.extend(found.iter().map(|class| {
                let rows = class.as_ref().map_or(&[][..], |class| &class.rows);
                let row = rows.iter().find(|row| row.case == *case);
                let rank = row.filter(|_| rows.len() > 1).map(|row| format!("rank {}", row.rank));
                Cell { aside: rank, ..Cell::estimate(row.map(|row| &row.rate), None) }
            }));
            table.push(cells);
        }
    }
    table
}

/// Heading of the column of the ranked figure.
fn figure_of(by: RankedBy) -> &'static str {
    match by {
        RankedBy::Rate | RankedBy::Capacity => "Rate",
        RankedBy::Latency => "Latency",
        RankedBy::Time => "Time",
        RankedBy::InTime => "Share in time",
    }
}

fn ranking_table(index: usize, ranking: &Ranking) -> Table {
    let unit = &ranking.unit;
    let figure = figure_of(ranking.by);
    let mean = format!("{} ({unit})", figure.to_lowercase());
    let [low, high, least, most] = ["low", "high", "least", "most"].map(|end| format!("{end} ({unit})"));
    let compared = "baseline,ratio,ratio low,ratio high,outcome,smallest detectable ratio,comparison,caveat";
    let compared: Vec<&str> = compared.split(',').collect();
    let columns = vec![
        TableColumn { title: "Rank".to_owned(), unit: None, numeric: true, csv: vec!["rank in class".to_owned()] },
        TableColumn::text("Case").csv(&["case", "label"]),
        TableColumn::number(&format!("{figure}, mean"), unit).csv(&[&mean, &low, &high, "trials used"]),
        TableColumn::number("Trials, min to max", unit).csv(&[&least, &most, "trials"]),
        TableColumn { numeric: true, ..TableColumn::text("Against the baseline, interval of the test") }.csv(&compared),
        TableColumn::number("p99", "ms").csv(&["p99 (ms)", "p99 low (ms)", "p99 high (ms)", "p99 trials"]),
        TableColumn::text("Durability, and why").csv(&["durability reason", "verdict"]),
    ];
    let mut table = Table::new(format!("ranking-{}", index + 1), ranking.title.clone(), columns)
        .lead(&["ranking", "measure", "class"]);
    table.note = left_out(ranking);
    let baseline = baseline_of(ranking);
    for class in &ranking.classes {
        let lead = vec![ranking.title.clone(), ranking.measure.clone(), class_key(class.class).to_owned()];
        table.open_class(class.class, lead);
        class.rows.iter().for_each(|row| table.push(rank_row(row, baseline).into()));
        // A single trial of each case decides nothing, which the first caveat says.
        let is_decided = class.rows.iter().any(|row| row.trials.len() > 1);
        let decisions = class.decision.iter();
        table.below(decisions.flat_map(|it| it.remarks.iter().chain(is_decided.then_some(&it.sentence))).cloned());
    }
    table
}

/// Trials left out because a block lacks a case: "left out: ext4, trial 3".
pub(super) fn left_out(ranking: &Ranking) -> Option<String> {
    let left = ranking.rows().filter_map(|row| {
        let left: Vec<u32> = row.trials.iter().filter(|trial| !trial.used).map(|trial| trial.trial).collect();
        (!left.is_empty()).then(|| format!("{}, {}", row.label, numbered("trial", &left)))
    });
    let left: Vec<String> = left.collect();
    (!left.is_empty())
        .then(|| format!("What is ranked is of the blocks that all cases have; left out: {}.", left.join("; ")))
}

/// Cells of a row, in the columns of [`ranking_tables`].
pub(super) fn rank_row(row: &RankRow, baseline: Option<&str>) -> [Cell; 7] {
    let case = Cell::case(&row.label, &row.case).csv(vec![row.case.clone(), row.label.clone()]);
    // A volatile case is fast at the price of losing commits: its rank is in brackets.
    let is_volatile = row.durability.class == DurabilityClass::Volatile;
    [
        Cell::number(Some(row.rank), |rank| if is_volatile { format!("({rank})") } else { rank.to_string() }),
        case,
        Cell { aside: None, ..Cell::estimate(Some(&row.rate), None) },
        trials_cell(row),
        comparison_cell(row.comparison.as_ref(), baseline == Some(row.case.as_str())),
        Cell { aside: None, ..Cell::estimate(row.latency_us_p99.map(|found| in_ms(&found)).as_ref(), None) },
        durability_cell(row),
    ]
}

/// Reason for the class, after the verdict if there is one.
fn durability_cell(row: &RankRow) -> Cell {
    let (reason, verdict) = (&row.durability.reason, row.verdict.as_ref().map(Verdict::short));
    let text = match &verdict {
        // If the verdict determined the class, the reason begins with it.
        Some(verdict) if !reason.starts_with("a power cut: ") => format!("a power cut: {verdict}; {reason}"),
        _ => reason.clone(),
    };
    // The full evidence is folded below its summary.
    let first = text.split("; ").next().unwrap_or_default().to_owned();
    let more = (first.len() < text.len()).then_some(text);
    Cell { more, ..Cell::text(first) }.csv(vec![reason.clone(), verdict.unwrap_or_default()]).style("reason")
}

/// Range of a case's trials; a dash for a single one, which is its mean.
fn trials_cell(row: &RankRow) -> Cell {
    let rates: Vec<f64> = row.trials.iter().map(|trial| trial.rate).collect();
    let (least, most) =
        (rates.iter().copied().fold(f64::INFINITY, f64::min), rates.iter().copied().fold(0.0, f64::max));
    let fields = vec![least.to_string(), most.to_string(), rates.len().to_string()];
    match rates.len() {
        0 => Cell::none(3).style("absent"),
        1 => Cell::none(3).csv(fields).style("absent"),
        _ => Cell::text(range_text(least, most, &row.rate)).csv(fields),
    }
}

/// Id of the case with which the others are compared.
pub(super) fn baseline_of(ranking: &Ranking) -> Option<&str> {
    ranking.rows().find_map(|row| Some(row.comparison.as_ref()?.baseline.as_str()))
}

fn comparison_cell(comparison: Option<&BaselineComparison>, is_baseline: bool) -> Cell {
    let Some(comparison) = comparison.filter(|_| !is_baseline) else {
        let text = if is_baseline { "baseline" } else { "–" };
        return Cell::text(text).csv(vec![String::new(); 8]).style("quiet");
    };
    let (text, interval) = comparison_text(&comparison.ratio, comparison.outcome);
    let style = match (comparison.outcome.differs(), &comparison.caveat) {
        (false, _) => "quiet undecided",
        (true, Some(_)) => "quiet",
        (true, None) => "",
    };
    let (outcome, detectable) = (comparison.outcome.words(), optional(comparison.detectable_ratio));
    let others = vec![outcome, detectable, comparison.method.clone(), optional(comparison.caveat.clone())];
    let csv = [vec![comparison.baseline.clone()], fields(Some(&comparison.ratio)), others].concat();
    Cell::text(text).aside(interval).remark(comparison.caveat.clone()).style(style).csv(csv)
}
