//! Latencies of each case, as tables: percentiles over trials with intervals, and each trial's own.

use super::labelled::Labelled;
use super::layout::ABSENT;
use super::table::{Cell, Table, TableColumn};
use super::words::{bounded, comparison_text, estimate_text, fields, in_ms, mean_millis, millis, optional, percent};
use crate::analyse::findings::{CaseFinding, Estimate, Latency, MeasureFinding, Percentile, PercentileRatio};
use crate::units::{Micros, significant};

/// Note on latencies of closed loops.
pub(super) const CLOSED_LOOP: &str = "Closed loop: each client sends its next operation when the last one is done, so \
                                      these are service times, without the operations that would have arrived during a \
                                      stall (coordinated omission). For latency at a fixed rate, set the workload's \
                                      option rate.";

/// Percentiles in tables, in order.
const PERCENTILES: [&str; 4] = ["p50", "p95", "p99", "p99.9"];

/// CSV headings of a ratio of percentiles.
const RATIO_FIELDS: [&str; 4] = ["baseline", "ratio", "ratio low", "ratio high"];

impl Labelled<'_> {
    /// Latency percentiles and counts of every measure.
    pub fn latencies(&self) -> Table {
        let mut columns = vec![
            TableColumn::text("Case").csv(&["case"]),
            TableColumn::text("Measure").csv(&["measure"]),
            TableColumn::text("Load").csv(&["fixed rate (1/s)", "latency limit (us)", "share logged (0 to 1)"]),
            TableColumn::estimate("Rate of all trials", "rate", "1/s"),
            TableColumn::number("mean", "ms"),
        ];
        columns.extend(PERCENTILES.map(|name| {
            let csv = ["", " low", " high", " merged"].map(|of| format!("{name}{of} (ms)"));
            TableColumn::number(name, "ms").csv(&[&csv[0], &csv[1], &csv[2], &csv[3], &format!("{name} trials")])
        }));
        columns.extend([
            TableColumn::number("p99 against the baseline", "").csv(&RATIO_FIELDS),
            TableColumn::number("slowest", "ms"),
            TableColumn::number("Done", ""),
            TableColumn::number("Failed", ""),
            TableColumn::number("Skipped", ""),
            TableColumn::number("Late", ""),
            TableColumn::estimate("In time", "in time", "share"),
        ]);
        let mut table = Table::new("latencies", "Latency, by case", columns).note(format!(
            "Percentiles per trial, averaged over trials (geometric mean, 95 % t interval). {}",
            self.logged_note()
        ));
        for case in &self.findings.cases {
            for measure in &case.measures {
                let mut row = vec![self.name(&case.id), Cell::text(measure.name.clone()), load_cell(case)];
                row.push(Cell::estimate(measure.rate.as_ref(), measure.unavailable.as_deref()));
                row.extend(latency_cells(case, measure));
                table.push(row);
            }
        }
        table
    }

    /// Percentiles of each trial, and of all trials' operations together.
    pub fn percentiles(&self) -> Table {
        let rows = self.over_cases("percentiles", "Percentiles of each trial", |case| {
            let found = case.measures.iter().filter_map(|it| Some((it, it.latency.as_ref()?)));
            found.flat_map(|(measure, latency)| latency.percentiles.iter().map(move |one| (measure, one)))
        });
        let table = rows.columns(&[
            (TableColumn::label("Measure"), &|(measure, _)| Cell::text(&measure.name)),
            (TableColumn::label("Percentile"), &|(_, one)| Cell::text(&one.name)),
            (TableColumn::estimate("Over trials", "over trials", "ms"), &|(_, one)| {
                Cell::estimate(one.over_trials.map(|over| in_ms(&over)).as_ref(), one.unavailable.as_deref())
            }),
            (TableColumn::number("Against the baseline", "").csv(&RATIO_FIELDS), &|(_, one)| {
                against_cell(one.comparison.as_ref())
            }),
            (TableColumn::text("Each trial, ms").csv(&["trials (number: ms)"]), &|(_, one)| {
                let trials = one.trials.iter().map(|(number, us)| format!("{number}: {}", millis(*us)));
                let exact = one.trials.iter().map(|(number, us)| format!("{number}: {}", Micros(*us).millis()));
                Cell::text(trials.collect::<Vec<_>>().join(", "))
                    .csv(vec![exact.collect::<Vec<_>>().join(", ")])
                    .style("lines")
            }),
            (TableColumn::number("Merged", "ms"), &|(_, one)| us_cell(one.merged_us.map(|us| us as f64))),
        ]);
        table.note(
            "Merged: over the operations of all trials. Its tail may come from a single bad trial and does not predict \
             the next one.",
        )
    }

    /// Note for cases in which not every operation was logged.
    pub fn logged_note(&self) -> &'static str {
        if self.findings.cases.iter().all(|case| case.log_sample.is_none()) {
            return "";
        }
        "Where a share was logged, percentiles are of that share, and the slowest operation took at least as long as the slowest logged; counts are of all."
    }

    pub fn any_closed_loop(&self) -> bool {
        let mut closed = self.findings.cases.iter().filter(|case| case.fixed_rate.is_none());
        closed.any(|case| case.measures.iter().any(|measure| measure.latency.is_some()))
    }
}

/// "closed loop", or the clients' rate with the limit; and the share that was logged.
pub(super) fn load_words(case: &CaseFinding) -> String {
    let logged = case.log_sample.map(|share| format!(", {} logged", percent(share))).unwrap_or_default();
    let Some(rate) = case.fixed_rate else { return format!("closed loop{logged}") };
    let limit = case.latency_limit_us.map(|limit| format!(", limit {}", Micros(limit))).unwrap_or_default();
    format!("{}/s{limit}{logged}", significant(rate))
}

fn load_cell(case: &CaseFinding) -> Cell {
    let fields = [optional(case.fixed_rate), optional(case.latency_limit_us), optional(case.log_sample)];
    Cell::text(load_words(case)).style("tight").csv(fields.into())
}

fn latency_cells(case: &CaseFinding, measure: &MeasureFinding) -> Vec<Cell> {
    let found = measure.latency.as_ref();
    let mut cells = vec![us_cell(found.map(|latency| latency.mean_us))];
    cells.extend(PERCENTILES.map(|name| percentile_cell(found.and_then(|latency| latency.percentile(name)))));
    let p99 = found.and_then(|latency| latency.percentile("p99"));
    cells.push(against_cell(p99.and_then(|p99| p99.comparison.as_ref())));
    let slowest = us_cell(found.map(|latency| latency.max_us as f64));
    cells.push(Cell { text: bounded("≥", case.log_sample.is_some(), slowest.text.clone()), ..slowest });
    cells.push(Cell::count(measure.done, ""));
    cells.extend([measure.failed, measure.skipped, measure.late].map(|count| Cell::count(count, "alarm")));
    cells.push(in_time_cell(case, measure));
    cells
}

/// Empty unless the plan has a limit: without one nothing is late.
fn in_time_cell(case: &CaseFinding, measure: &MeasureFinding) -> Cell {
    let found = measure.in_time.filter(|_| case.latency_limit_us.is_some());
    let Some(found) = found else { return Cell::none(4).style("absent") };
    let ends = found.low.zip(found.high).map(|(low, high)| format!("{}–{}", percent(low), percent(high.min(1.0))));
    Cell::text(percent(found.value)).aside(ends.unwrap_or_default()).csv(Cell::estimate(Some(&found), None).csv)
}

fn percentile_cell(found: Option<&Percentile>) -> Cell {
    let Some(found) = found else { return Cell::none(5).style("absent") };
    let merged = optional(found.merged_us.map(|us| Micros(us).millis()));
    let over = found.over_trials.map(|over| in_ms(&over));
    // Value, ends, trials; the reason for a missing one is in the table of trials.
    let mut fields = Cell::estimate(over.as_ref(), None).csv;
    fields.insert(3, merged);
    let shown = over.map(|over| percentile_text(&over)).map(|(value, interval)| Cell::text(value).aside(interval));
    shown.unwrap_or_else(|| Cell::none(1).style("absent")).csv(fields)
}

/// A percentile as a ratio to the baseline.
pub(super) fn against_cell(found: Option<&PercentileRatio>) -> Cell {
    let Some(found) = found else { return Cell::none(4).style("quiet") };
    let (text, interval) = comparison_text(&found.ratio, found.outcome);
    let style = if found.outcome.differs() { "" } else { "quiet" };
    let fields = [vec![found.baseline.clone()], fields(Some(&found.ratio))].concat();
    Cell::text(text).aside(interval).style(style).csv(fields)
}

/// Percentiles of a case's main measure in short tables.
pub(super) const SHOWN: [&str; 3] = ["p50", "p99", "p99.9"];

/// These of a case, each with its interval on one line.
pub(super) fn shown_percentiles(latency: &Latency) -> [String; 3] {
    SHOWN.map(|name| {
        let over = latency.percentile(name).and_then(|found| found.over_trials);
        let Some(over) = over else { return ABSENT.to_owned() };
        let (value, interval) = percentile_text(&in_ms(&over));
        if over.low.is_some() { format!("{value} ({interval})") } else { value }
    })
}

/// The lowest percentile that a case lacks, and the reason.
pub(super) fn missing(case: &CaseFinding) -> Option<(&str, &str)> {
    let missing = case.measures.first()?.latency.as_ref()?.percentiles.iter().find(|one| one.over_trials.is_none())?;
    Some((&missing.name, missing.unavailable.as_deref()?))
}

/// A percentile in milliseconds and its interval; latencies have a resolution of one microsecond.
fn percentile_text(ms: &Estimate) -> (String, String) {
    match estimate_text(ms) {
        _ if ms.value < 0.001 => (millis(0), String::new()),
        (value, _) if ms.trials == 1 => (value, String::new()),
        shown => shown,
    }
}

fn us_cell(us: Option<f64>) -> Cell {
    let ms = us.map(|us| us / 1e3);
    Cell { value: ms.filter(|ms| *ms > 0.0), ..Cell::number(us, mean_millis) }.csv(vec![optional(ms)])
}
