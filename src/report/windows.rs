//! Contents of the measured windows, as tables: work inside and outside of checkpoints, each window, each checkpoint.

use super::labelled::{Labelled, trial_columns};
use super::table::{Cell, Table, TableColumn};
use super::words::{millis, optional, percent};
use crate::analyse::findings::{CheckpointFinding, PhaseFinding};
use crate::units::{Bytes, Micros, grouped};

impl Labelled<'_> {
    /// Rate and 99th percentile inside and outside of checkpoints, and writers of pages.
    pub fn phases(&self) -> Table {
        let columns = vec![
            TableColumn::text("Case").csv(&["case"]),
            TableColumn::number("Whole cycles", "").csv(&["fewest whole cycles", "most whole cycles"]),
            TableColumn::number("In checkpoints", "s"),
            TableColumn::number("Rate in them", "1/s"),
            TableColumn::number("p99 in them", "ms").csv(&["p99 in them (us)"]),
            TableColumn::number("Outside", "s"),
            TableColumn::number("Rate outside", "1/s"),
            TableColumn::number("p99 outside", "ms").csv(&["p99 outside (us)"]),
            TableColumn::number("By checkpoints", "pages"),
            TableColumn::number("By the background writer", "pages"),
            TableColumn::number("By backends", "pages"),
            TableColumn::estimate("Checkpoint sync per GB written", "checkpoint sync", "s/GB"),
            TableColumn::number("Autovacuum", "share").csv(&["autovacuum (0 to 1 of the time)"]),
        ];
        let mut table = Table::new("phases", "Inside and outside checkpoints", columns).note(
            "All trials. Only seconds entirely inside or entirely outside a checkpoint. Pages: table and index pages, by \
             writer.",
        );
        for case in &self.findings.cases {
            let Some(window) = &case.window else { continue };
            let (fewest, most) = window.whole_cycles;
            let cycles = if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") };
            let cycles = Cell::text(cycles).csv(vec![fewest.to_string(), most.to_string()]);
            let mut row = vec![self.name(&case.id), cycles];
            row.extend([phase_cells(&window.inside), phase_cells(&window.outside)].concat());
            let pages = window.pages;
            row.extend([
                Cell::number(pages.map(|pages| pages.checkpointer), grouped),
                Cell::number(pages.map(|pages| pages.background_writer), grouped),
                Cell::number(pages.map(|pages| pages.backends), grouped),
                Cell::estimate(window.sync_s_per_gb.as_ref(), None),
                Cell::number(Some(window.vacuum_share), percent),
            ]);
            table.push(row);
        }
        table
    }

    /// Cases that stood side by side.
    pub fn turns(&self) -> Table {
        let columns = vec![
            TableColumn::text("Case").csv(&["case"]),
            TableColumn::number("Turns", ""),
            TableColumn::number("Wrote between them", "share")
                .csv(&["wrote between them (0 to 1 of the bytes in them)"]),
            TableColumn::estimate("Turns after its own", "turns after its own", "times all"),
        ];
        let found = self.findings.turns.as_ref();
        let rounds = found.map_or(0, |found| found.rounds);
        let again = found.map_or(0, |found| found.made_again);
        let mut table = Table::new("turns", "Turns, side by side", columns).note(format!(
            "{rounds} rounds, in each of which every case had a turn of a few seconds; {again} more were made again, since \
             the disk was disturbed. Wrote between them: bytes that the idle stack wrote during the turns of others. Turns \
             after its own: rate of the turn that follows, against all; the order spreads that evenly over the cases."
        ));
        for case in found.iter().flat_map(|found| &found.cases) {
            table.push(vec![
                self.name(&case.case),
                Cell::number(Some(case.turns), grouped),
                Cell::number(case.idle_share, percent),
                Cell::estimate(case.after.as_ref(), None),
            ]);
        }
        table
    }

    /// One row per window.
    pub fn windows(&self) -> Table {
        let columns = trial_columns(vec![
            TableColumn::number("Waited for quiet", "s"),
            TableColumn::text("Quiet").csv(&["quiet"]),
            TableColumn::number("Warm-up", "cycles"),
            TableColumn::text("Settled").csv(&["settled"]),
            TableColumn::number("Length", "s"),
            TableColumn::number("Whole cycles", ""),
            TableColumn::number("New WAL segments", ""),
            TableColumn::number("First part", "1/s"),
            TableColumn::number("Last part", "1/s"),
            TableColumn::text("Trend").csv(&["trend"]),
        ]);
        let mut table = Table::new("windows", "The window of each trial", columns).note(
            "Settled: two cycles of the warm-up agreed in rate, WAL per commit and pages read per commit. Trend: first \
             whole cycle vs. last; without two whole cycles, first third of the window vs. last third.",
        );
        for trial in &self.findings.trials {
            let Some(window) = &trial.window else { continue };
            let settle = trial.settle.as_ref();
            let whole = Cell::number(Some(window.whole_cycles), grouped);
            let [case, number] = self.trial_key(trial);
            table.push(vec![
                case,
                number,
                Cell::figure(settle.map(|settle| Micros(settle.waited_us).seconds())),
                yes(settle.map(|settle| settle.quiet), false),
                Cell::number(Some(window.warm_up_cycles), grouped),
                yes(window.settled, false),
                Cell::figure(Some(window.length_s)),
                if window.cut { whole.style("alarm") } else { whole },
                Cell::number(window.wal_segments_new, grouped),
                Cell::figure(window.trend.map(|trend| trend.first)),
                Cell::figure(window.trend.map(|trend| trend.last)),
                yes(window.trend.map(|trend| trend.seen), true),
            ]);
        }
        table
    }

    /// Every checkpoint that overlaps a window.
    pub fn checkpoints(&self) -> Table {
        let columns = trial_columns(vec![
            TableColumn::number("Began", "s"),
            TableColumn::number("Ended", "s"),
            TableColumn::text("Why").csv(&["why"]),
            TableColumn::number("Pages", ""),
            TableColumn::number("Write", "s"),
            TableColumn::number("Sync", "s"),
            TableColumn::number("Files", ""),
            TableColumn::number("Longest file", "ms"),
            TableColumn::number("WAL since the last", "").csv(&["WAL since the checkpoint before (B)"]),
            TableColumn::number("Segments added", ""),
            TableColumn::number("Removed", ""),
            TableColumn::number("Recycled", ""),
        ]);
        let table = Table::new("checkpoints", "Every checkpoint of the windows", columns).note(
            "From the server's log. Began and ended: after the first operation. Segments added: by the checkpointer; \
             those added by backends are in the table of windows.",
        );
        let rows = self.findings.trials.iter().flat_map(|trial| {
            trial.window.iter().flat_map(|window| &window.checkpoints).map(move |checkpoint| (trial, checkpoint))
        });
        table.rows(
            rows.map(|(trial, checkpoint)| {
                self.trial_key(trial).into_iter().chain(checkpoint_cells(checkpoint)).collect()
            }),
        )
    }
}

fn phase_cells(phase: &PhaseFinding) -> [Cell; 3] {
    [
        Cell::number(Some(phase.seconds), grouped),
        Cell::figure(phase.rate),
        Cell::number(phase.p99_us, millis).csv(vec![optional(phase.p99_us)]),
    ]
}

fn checkpoint_cells(checkpoint: &CheckpointFinding) -> Vec<Cell> {
    let done = checkpoint.done.as_ref();
    vec![
        Cell::number(Some(checkpoint.start_s), one_decimal),
        Cell::number(checkpoint.end_s, one_decimal),
        Cell::text(checkpoint.cause.clone()),
        Cell::number(done.map(|done| done.buffers), grouped),
        Cell::figure(done.map(|done| Micros(done.write_us).seconds())),
        Cell::figure(done.map(|done| Micros(done.sync_us).seconds())),
        Cell::number(done.map(|done| done.files), grouped),
        Cell::figure(done.map(|done| Micros(done.longest_us).millis())),
        Cell::number(done.map(|done| done.distance_bytes), |bytes| Bytes(bytes).to_string()),
        Cell::number(done.map(|done| done.wal_added), grouped),
        Cell::number(done.map(|done| done.wal_removed), grouped),
        Cell::number(done.map(|done| done.wal_recycled), grouped),
    ]
}

/// "yes" or "no", an alarm if that is bad.
fn yes(is: Option<bool>, bad: bool) -> Cell {
    let Some(is) = is else { return Cell::none(1).style("absent") };
    Cell::text(if is { "yes" } else { "no" }).style(if is == bad { "alarm" } else { "" })
}

fn one_decimal(seconds: f64) -> String {
    format!("{seconds:.1}")
}
