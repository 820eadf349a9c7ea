//! Findings of each trial, as tables: the trials, steps, processes, cross-checks, gaps, not run.

use super::labelled::{Labelled, trial_columns};
use super::table::{Cell, Table, TableColumn};
use super::words::{moment, percent, ranges};
use crate::analyse::findings::Step;
use crate::units::{Micros, significant};

impl Labelled<'_> {
    pub fn trials(&self) -> Table {
        let columns = trial_columns(vec![
            TableColumn::text("Began").csv(&["began"]),
            TableColumn::number("Rate", "1/s"),
            TableColumn::text("Caches and data").csv(&["cache state"]),
            TableColumn::text("Notes").csv(&["notes"]),
        ]);
        let mut table = Table::new("trials", "Trials measured", columns);
        for trial in &self.findings.trials {
            let [case, number] = self.trial_key(trial);
            table.push(vec![
                case,
                number,
                Cell::text(moment(&trial.started)).csv(vec![trial.started.clone()]).style("tight"),
                Cell::figure(trial.rate),
                Cell::text(trial.cache_state.clone().unwrap_or_default()).style("reason"),
                Cell::text(trial.notes.join("; ")).style("reason"),
            ]);
        }
        for aside in &self.findings.set_aside {
            let which = if aside.is_repeat { "repeat, not counted" } else { "not counted" };
            let note = format!("set aside: {}", aside.why);
            table.push(vec![
                self.name(&aside.case),
                Cell::text(format!("{} ({which})", aside.trial)).csv(vec![aside.trial.to_string()]),
                Cell::text(moment(&aside.started)).csv(vec![aside.started.clone()]).style("tight"),
                Cell::number(aside.rate, significant),
                Cell::text("").csv(vec![which.to_owned()]),
                Cell::text(note).style("reason"),
            ]);
        }
        table
    }

    /// Wall time of each step.
    pub fn steps(&self) -> Table {
        let steps = Step::all().map(|step| TableColumn::number(step.name(), "s")).collect();
        let mut table = Table::new("steps", "Time of each step", trial_columns(steps));
        for trial in &self.findings.trials {
            let mut row = Vec::from(self.trial_key(trial));
            row.extend(Step::all().map(|step| {
                let spent = trial.steps.iter().filter(|time| time.step == step).map(|time| time.wall_us);
                Cell::figure(spent.reduce(|sum, us| sum + us).map(|us| Micros(us).seconds()))
            }));
            table.push(row);
        }
        table
    }

    /// Processes that used most CPU.
    pub fn processes(&self) -> Table {
        let caption = "Top processes and kernel threads by CPU";
        self.over_trials("processes", caption, |trial| &trial.processes).columns(&[
            (TableColumn::text("Process").csv(&["process or kernel thread"]), &|(process, _)| {
                Cell::text(process).style("code")
            }),
            (TableColumn::number("CPU", "share of one").csv(&["mean CPU (CPUs)"]), &|(_, share)| Cell::share(*share)),
        ])
    }

    /// The tool's figures beside ours.
    pub fn checks(&self) -> Table {
        let caption = "Figures reported by the tool, checked against pgstrata's counts";
        self.over_trials("checks", caption, |trial| &trial.checks).columns(&[
            (TableColumn::label("Figure"), &|check| Cell::text(&check.what).style("code")),
            (TableColumn::number("Tool says", ""), &|check| Cell::number(Some(check.tool), exact)),
            (TableColumn::number("pgstrata counted", ""), &|check| Cell::number(Some(check.own), exact)),
            (TableColumn::label("Agree"), &|check| Cell::yes(Some(check.agrees), false)),
            (TableColumn::number("Tolerance", "").csv(&["tolerance (0 to 1)"]), &|check| {
                Cell::number(Some(check.tolerance), |t| if t == 0.0 { "exact".to_owned() } else { percent(t) })
            }),
        ])
    }

    /// Gaps in the telemetry.
    pub fn gaps(&self) -> Table {
        self.over_trials("gaps", "Gaps in the telemetry", |trial| &trial.gaps).columns(&[
            (TableColumn::label("Source"), &|gap| Cell::text(&gap.source)),
            (TableColumn::number("From second", "").csv(&["from second (s)"]), &|gap| match gap.second {
                Some(second) => Cell::text(second.to_string()),
                None => Cell::text("all the time").csv(vec![String::new()]),
            }),
            (TableColumn::number("Rows", ""), &|gap| Cell::text(gap.rows.to_string())),
            (TableColumn::label("Why"), &|gap| Cell::text(&gap.reason).style("reason")),
        ])
    }

    /// Everything that was not run, with reasons.
    pub fn not_run(&self) -> Table {
        Table::over("not-run", "Trials without figures", &self.findings.not_run).columns(&[
            (TableColumn::label("Case"), &|found| self.name(&found.case)),
            (TableColumn::label("Trials"), &|found| Cell::text(ranges(&found.trials))),
            (TableColumn::text("Ended in").csv(&["step"]), &|found| {
                found.step.as_ref().map_or_else(|| Cell::none(1), Cell::text)
            }),
            (TableColumn::label("Why"), &|found| Cell::log(&found.reason).style("lines")),
            (TableColumn::text("How to fix it").csv(&["hint"]), &|found| {
                Cell::text(found.hint.clone().unwrap_or_default()).style("reason")
            }),
        ])
    }
}

/// A figure that may be a count: whole numbers in full, others with three digits.
fn exact(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        crate::units::grouped(value.abs() as u64)
    } else {
        format!("{value:.3}")
    }
}
