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
        let columns = trial_columns(vec![
            TableColumn::text("Process").csv(&["process or kernel thread"]),
            TableColumn::number("CPU", "share of one").csv(&["mean CPU (CPUs)"]),
        ]);
        let table = Table::new("processes", "Top processes and kernel threads by CPU", columns);
        let rows = self.findings.trials.iter().flat_map(|trial| trial.processes.iter().map(move |it| (trial, it)));
        table.rows(rows.map(|(trial, (process, share))| {
            let [case, number] = self.trial_key(trial);
            let process = Cell::text(process.clone()).style("code");
            vec![case, number, process, Cell::number(Some(*share), percent)]
        }))
    }

    /// The tool's figures beside ours.
    pub fn checks(&self) -> Table {
        let columns = trial_columns(vec![
            TableColumn::text("Figure").csv(&["figure"]),
            TableColumn::number("Tool says", ""),
            TableColumn::number("pgstrata counted", ""),
            TableColumn::text("Agree").csv(&["agree"]),
            TableColumn::number("Tolerance", "").csv(&["tolerance (0 to 1)"]),
        ]);
        let table = Table::new("checks", "Figures reported by the tool, checked against pgstrata's counts", columns);
        let rows = self.findings.trials.iter().flat_map(|trial| trial.checks.iter().map(move |check| (trial, check)));
        table.rows(rows.map(|(trial, check)| {
            let [case, number] = self.trial_key(trial);
            let style = if check.agrees { "" } else { "alarm" };
            vec![
                case,
                number,
                Cell::text(check.what.clone()).style("code"),
                Cell::number(Some(check.tool), exact),
                Cell::number(Some(check.own), exact),
                Cell::text(if check.agrees { "yes" } else { "no" }).style(style),
                Cell::number(Some(check.tolerance), |t| if t == 0.0 { "exact".to_owned() } else { percent(t) }),
            ]
        }))
    }

    /// Gaps in the telemetry.
    pub fn gaps(&self) -> Table {
        let columns = trial_columns(vec![
            TableColumn::text("Source").csv(&["source"]),
            TableColumn::number("From second", "").csv(&["from second (s)"]),
            TableColumn::number("Rows", ""),
            TableColumn::text("Why").csv(&["why"]),
        ]);
        let table = Table::new("gaps", "Gaps in the telemetry", columns);
        let rows = self.findings.trials.iter().flat_map(|trial| trial.gaps.iter().map(move |gap| (trial, gap)));
        table.rows(rows.map(|(trial, gap)| {
            let [case, number] = self.trial_key(trial);
            let from = match gap.second {
                Some(second) => Cell::number(Some(second), |s| s.to_string()),
                None => Cell::text("all the time").csv(vec![String::new()]),
            };
            let rows = Cell::number(Some(gap.rows), |n| n.to_string());
            let (source, why) = (Cell::text(gap.source.clone()), Cell::text(gap.reason.clone()).style("reason"));
            vec![case, number, source, from, rows, why]
        }))
    }

    /// Everything that was not run, with reasons.
    pub fn not_run(&self) -> Table {
        let columns = vec![
            TableColumn::text("Case").csv(&["case"]),
            TableColumn::text("Trials").csv(&["trials"]),
            TableColumn::text("Ended in").csv(&["step"]),
            TableColumn::text("Why").csv(&["why"]),
            TableColumn::text("How to fix it").csv(&["hint"]),
        ];
        let rows = self.findings.not_run.iter().map(|found| {
            let step = match &found.step {
                Some(step) => Cell::text(step.clone()),
                None => Cell::none(1),
            };
            vec![
                self.name(&found.case),
                Cell::text(ranges(&found.trials)),
                step,
                Cell::log(&found.reason).style("lines"),
                Cell::text(found.hint.clone().unwrap_or_default()).style("reason"),
            ]
        });
        Table::new("not-run", "Trials without figures", columns).rows(rows)
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
