//! The highest rate within a latency limit: both figures of each case, and every step.

use super::labelled::Labelled;
use super::table::{Cell, Table, TableColumn};
use super::words::millis;
use crate::units::{Micros, grouped, significant};

/// Explanation of the two figures.
const NOTE: &str = "Holds: the highest rate that passed three consecutive steps in every trial: use it for \
                               capacity planning. About: the rate at which half of the steps pass, with its 95 % CI: use \
                               it to compare stacks. A step passes when at most 1 % of the transactions due were late, \
                               skipped or failed, 99 % of those offered were done, no second passed without a commit \
                               while some were due, and pgbench itself was not late. Without a limit: the rate of the \
                               warm-up, at full speed.";

impl Labelled<'_> {
    pub fn capacities(&self) -> Table {
        let about = ["about (1/s)", "about low (1/s)", "about high (1/s)"];
        let rows = self.over_cases("capacities", "Highest rate within the latency limit", |case| &case.capacity);
        let table = rows.columns(&[
            (TableColumn::number("Limit", "").csv(&["latency limit (us)"]), &|it| {
                Cell::number(Some(it.limit_us), |us| Micros(us).to_string())
            }),
            (TableColumn::number("Holds", "1/s"), &|it| Cell::number(it.holds, significant)),
            (TableColumn::number("About", "1/s").csv(&about), &|it| Cell::bounded(it.about.as_ref())),
            (TableColumn::number("Without a limit", "1/s"), &|it| Cell::number(Some(it.peak), significant)),
            (TableColumn::number("Trials", ""), &|it| Cell::text(it.searches.to_string())),
        ]);
        table.note(NOTE)
    }

    /// Every step of every trial.
    pub fn capacity_steps(&self) -> Table {
        let rows =
            self.over_cases("capacity-steps", "Every step", |case| case.capacity.iter().flat_map(|it| &it.steps));
        let table = rows.columns(&[
            (TableColumn::number("Trial", ""), &|it| Cell::text(it.trial.to_string())),
            (TableColumn::number("Step", ""), &|it| Cell::text(it.step.to_string())),
            (TableColumn::number("Rate", "1/s"), &|it| Cell::number(Some(it.rate), significant)),
            (TableColumn::number("Due", ""), &|it| Cell::number(Some(it.due), grouped)),
            (TableColumn::number("Late", ""), &|it| Cell::number(Some(it.late), grouped)),
            (TableColumn::number("Skipped", ""), &|it| Cell::number(Some(it.skipped), grouped)),
            (TableColumn::number("Late or skipped", "share"), &|it| Cell::share(it.late_share)),
            (TableColumn::units("p99", "ms", "us"), &|it| Cell::number(it.p99_us, millis)),
            (TableColumn::number("No commit", "s"), &|it| Cell::number(Some(it.silent_s), grouped)),
            (TableColumn::number("pgbench lag", "ms").csv(&["driver lag mean (us)"]), &|it| {
                Cell::number(Some(it.driver_lag_us_mean), |us| millis(us as u64))
            }),
            (TableColumn::label("Result"), &|it| Cell::text(it.failed_by.as_deref().unwrap_or("passed"))),
        ]);
        table.note("In the order they were run. No p99: it falls among the skipped transactions.")
    }
}
