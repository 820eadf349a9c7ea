//! Cost of one operation at each layer, compared between the cases of a ranking.

use super::table::{Cell, Table, TableColumn};
use super::words::{fields, ratio_words};
use crate::analyse::findings::{CostCounter, CounterComparison, CounterRow, PairOutcome, Ranking, names};
use crate::units::{Bytes, significant};

/// A row per case of each ranking, a column per counter.
pub(super) fn counters_table(rankings: &[Ranking]) -> Table {
    let mut columns = vec![TableColumn::text("Case").csv(&["case"])];
    columns.extend(CostCounter::ALL.map(|counter| {
        let key = names::stored(&counter);
        let csv =
            ["", "_low", "_high", "_ratio", "_ratio_low", "_ratio_high", "_outcome"].map(|end| format!("{key}{end}"));
        TableColumn::number(title(counter), "").csv(&csv.each_ref().map(String::as_str))
    }));
    let note = "Per operation; CPU time is that of server, kernel and clients. Ratios are to the baseline, or to the first \
                case that has the counter. All pairs of a counter are tested together, with a risk of at most 5 % of any false \
                difference among them.";
    let mut table =
        Table::new("counters", "One operation at each layer, compared", columns).lead(&["ranking"]).note(note);
    for ranking in rankings.iter().filter(|ranking| !ranking.counters.is_empty()) {
        table.open_group(Some(ranking.title.clone()), None, vec![ranking.title.clone()]);
        for row in ranking.rows() {
            let cells = CostCounter::ALL.map(|counter| cell(counter, row_of(&ranking.counters, counter, &row.case)));
            table.push([vec![Cell::case(&row.label, &row.case)], cells.to_vec()].concat());
        }
    }
    table
}

/// Counters that differ: "per operation against ext4: WAL: btrfs 1.27× (1.22–1.32); device writes: xfs 1.1×
/// (1.05–1.16)."; `None` if none does.
pub(super) fn differing_counters(ranking: &Ranking) -> Option<String> {
    let against = reference_label(ranking.counters.first()?)?;
    let differing = ranking.counters.iter().filter_map(|compared| {
        let rows = compared.rows.iter().filter(|row| row.outcome.is_some_and(PairOutcome::differs));
        let rows = rows.map(|row| {
            let ratio = row.ratio.as_ref().map_or_else(|| figure_text(compared.counter, row.figure.value), ratio_words);
            format!("{} {ratio}", row.label)
        });
        let rows: Vec<String> = rows.collect();
        let other = reference_label(compared).filter(|other| *other != against);
        let other = other.map_or_else(String::new, |other| format!(" against {other}"));
        (!rows.is_empty()).then(|| format!("{}{other}: {}", title(compared.counter), rows.join(", ")))
    });
    let differing: Vec<String> = differing.collect();
    (!differing.is_empty()).then(|| format!("per operation against {against}: {}.", differing.join("; ")))
}

fn reference_label(compared: &CounterComparison) -> Option<&str> {
    compared.rows.iter().find(|row| row.case == compared.reference).map(|row| row.label.as_str())
}

fn row_of<'a>(compared: &'a [CounterComparison], counter: CostCounter, case: &str) -> Option<&'a CounterRow> {
    compared.iter().find(|compared| compared.counter == counter)?.rows.iter().find(|row| row.case == case)
}

fn title(counter: CostCounter) -> &'static str {
    match counter {
        CostCounter::WalBytes => "WAL",
        CostCounter::FlushesPerWalSync => "flushes per WAL sync",
        CostCounter::DeviceWrites => "device writes",
        CostCounter::DeviceBytes => "device bytes",
        CostCounter::CpuUs => "CPU time",
    }
}

fn figure_text(counter: CostCounter, value: f64) -> String {
    match counter {
        CostCounter::WalBytes | CostCounter::DeviceBytes => Bytes(value.round() as u64).to_string(),
        CostCounter::FlushesPerWalSync | CostCounter::DeviceWrites => significant(value),
        CostCounter::CpuUs => format!("{} us", significant(value)),
    }
}

fn cell(counter: CostCounter, row: Option<&CounterRow>) -> Cell {
    let Some(row) = row else { return Cell::none(7).style("absent") };
    let differs = row.outcome.is_none_or(PairOutcome::differs);
    let words = row.outcome.map(PairOutcome::words).unwrap_or_default();
    let ratio = row.ratio.as_ref().map(ratio_words);
    let ratio = ratio.map(|ratio| if differs { ratio } else { format!("{words}: {ratio}") });
    let fields = [fields(Some(&row.figure)), fields(row.ratio.as_ref()), vec![words]].concat();
    let style = if differs { "" } else { "quiet undecided" };
    Cell::text(figure_text(counter, row.figure.value)).aside(ratio.unwrap_or_default()).csv(fields).style(style)
}
