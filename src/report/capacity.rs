//! The highest rate within a latency limit: both figures of each case, and every step.

use super::labelled::{Labelled, trial_columns};
use super::table::{Cell, Table, TableColumn};
use super::words::{millis, percent};
use crate::analyse::findings::{CapacityFinding, CapacityStep, CaseFinding};
use crate::units::{Micros, grouped, significant};

/// Explanation of the two figures.
const NOTE: &str = "Holds: the highest rate that passed three consecutive steps in every trial: use it for \
                               capacity planning. About: the rate at which half of the steps pass, with its 95 % CI: use \
                               it to compare stacks. A step passes when at most 1 % of the transactions due were late, \
                               skipped or failed, 99 % of those offered were done, no second passed without a commit \
                               while some were due, and pgbench itself was not late. Without a limit: the rate of the \
                               warm-up, at full speed.";

impl Labelled<'_> {
    fn searches(&self) -> impl Iterator<Item = (&CaseFinding, &CapacityFinding)> {
        self.findings.cases.iter().filter_map(|case| Some((case, case.capacity.as_ref()?)))
    }

    pub fn capacities(&self) -> Table {
        let columns = vec![
            TableColumn::text("Case").csv(&["case"]),
            TableColumn::number("Limit", "").csv(&["latency limit (us)"]),
            TableColumn::number("Holds", "1/s"),
            TableColumn::number("About", "1/s").csv(&["about (1/s)", "about low (1/s)", "about high (1/s)"]),
            TableColumn::number("Without a limit", "1/s"),
            TableColumn::number("Trials", ""),
        ];
        let rows = self.searches().map(|(case, capacity)| {
            vec![
                self.name(&case.id),
                Cell::number(Some(capacity.limit_us), |us| Micros(us).to_string()),
                Cell::number(capacity.holds, significant),
                Cell::bounded(capacity.about.as_ref()),
                Cell::number(Some(capacity.peak), significant),
                Cell::number(Some(capacity.searches), |trials| trials.to_string()),
            ]
        });
        Table::new("capacities", "Highest rate within the latency limit", columns).note(NOTE).rows(rows)
    }

    /// Every step of every trial.
    pub fn capacity_steps(&self) -> Table {
        let columns = trial_columns(vec![
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
        ]);
        let rows = self
            .searches()
            .flat_map(|(case, capacity)| capacity.steps.iter().map(|step| self.capacity_step(case, step)));
        Table::new("capacity-steps", "Every step", columns)
            .note("In the order they were run. No p99: it falls among the skipped transactions.")
            .rows(rows)
    }

    fn capacity_step(&self, case: &CaseFinding, step: &CapacityStep) -> Vec<Cell> {
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
