//! The highest rate within a latency limit: both figures of each case, and every step.

use super::table::{Cell, Table, TableColumn};
use super::words::{estimate_text, millis, percent};
use crate::analyse::findings::{Capacity, CapacityStep, CaseFinding};
use crate::units::{Micros, grouped, significant};
use std::collections::BTreeMap;

/// Explanation of the two figures.
pub(super) const NOTE: &str = "Holds: the highest rate that passed three consecutive steps in every trial: use it for \
                               capacity planning. About: the rate at which half of the steps pass, with its 95 % CI: use \
                               it to compare stacks. A step passes when at most 1 % of the transactions due were late, \
                               skipped or failed, 99 % of those offered were done, no second passed without a commit \
                               while some were due, and pgbench itself was not late. Without a limit: the rate of the \
                               warm-up, at full speed.";

/// Cases with a capacity search, with their labels.
pub(super) struct Capacities<'a> {
    pub cases: &'a [CaseFinding],
    /// Label of a case by id.
    pub labels: &'a BTreeMap<String, String>,
}

impl Capacities<'_> {
    fn name(&self, id: &str) -> Cell {
        Cell::case(self.labels.get(id).map_or(id, String::as_str), id)
    }

    fn found(&self) -> impl Iterator<Item = (&CaseFinding, &Capacity)> {
        self.cases.iter().filter_map(|case| Some((case, case.capacity.as_ref()?)))
    }

    pub fn figures(&self) -> Table {
        let columns = vec![
            TableColumn::text("Case").csv(&["case"]),
            TableColumn::number("Limit", "").csv(&["latency limit (us)"]),
            TableColumn::number("Holds", "1/s"),
            TableColumn::number("About", "1/s").csv(&["about (1/s)", "about low (1/s)", "about high (1/s)"]),
            TableColumn::number("Without a limit", "1/s"),
            TableColumn::number("Trials", ""),
        ];
        let mut table = Table::new("capacities", "Highest rate within the latency limit", columns).note(NOTE);
        for (case, capacity) in self.found() {
            table.push(vec![
                self.name(&case.id),
                Cell::number(Some(capacity.limit_us), |us| Micros(us).to_string()),
                Cell::number(capacity.holds, significant),
                about(capacity),
                Cell::number(Some(capacity.peak), significant),
                Cell::number(Some(capacity.searches), |trials| trials.to_string()),
            ]);
        }
        table
    }

    /// Every step of every trial.
    pub fn steps(&self) -> Table {
        let columns = vec![
            TableColumn::text("Case").csv(&["case"]),
            TableColumn::number("Trial", ""),
            TableColumn::number("Step", ""),
            TableColumn::number("Rate", "1/s"),
            TableColumn::number("Due", ""),
            TableColumn::number("Late", ""),
            TableColumn::number("Skipped", ""),
            TableColumn::number("Late or skipped", "share"),
            TableColumn::number("p99", "ms").csv(&["p99 (us)"]),
            TableColumn::number("No commit", "s"),
            TableColumn::number("pgbench lag", "ms").csv(&["driver lag mean (us)"]),
            TableColumn::text("Result").csv(&["result"]),
        ];
        let mut table = Table::new("capacity-steps", "Every step", columns)
            .note("In the order they were run. No p99: it falls among the skipped transactions.");
        for (case, capacity) in self.found() {
            for step in &capacity.steps {
                table.push(self.step(case, step));
            }
        }
        table
    }

    fn step(&self, case: &CaseFinding, step: &CapacityStep) -> Vec<Cell> {
        vec![
            self.name(&case.id),
            Cell::number(Some(step.trial), |trial| trial.to_string()),
            Cell::number(Some(step.step), |step| step.to_string()),
            Cell::number(Some(step.rate), significant),
            Cell::number(Some(step.due), grouped),
            Cell::number(Some(step.late), grouped),
            Cell::number(Some(step.skipped), grouped),
            Cell::number(Some(step.late_share), percent),
            Cell::number(step.p99_us, millis),
            Cell::number(Some(step.silent_s), grouped),
            Cell::number(Some(step.driver_lag_us_mean), |us| millis(us as u64)),
            Cell::text(step.failed_by.as_deref().unwrap_or("passed")),
        ]
    }
}

/// The figure and its interval.
fn about(capacity: &Capacity) -> Cell {
    let Some(found) = &capacity.about else { return Cell::text("–").csv(vec![String::new(); 3]) };
    let (value, interval) = estimate_text(found);
    let end = |end: Option<f64>| end.map(|end| end.to_string()).unwrap_or_default();
    let mut cell = Cell::text(value).csv(vec![found.value.to_string(), end(found.low), end(found.high)]);
    cell.aside = found.low.is_some().then_some(interval);
    cell
}
