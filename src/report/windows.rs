//! Contents of the measured windows, as tables: work inside and outside of checkpoints, each window, each checkpoint.

use super::labelled::Labelled;
use super::table::{Cell, Table, TableColumn};
use super::words::millis;
use crate::analyse::findings::{CaseWindow, CheckpointDone, TurnsFinding};
use crate::units::{Bytes, Micros, grouped};

impl Labelled<'_> {
    /// Rate and 99th percentile inside and outside of checkpoints, and writers of pages.
    pub fn phases(&self) -> Table {
        let cycles = ["fewest whole cycles", "most whole cycles"];
        let rows = self.findings.cases.iter().filter_map(|case| Some((case, case.window.as_ref()?)));
        let table = Table::over("phases", "Inside and outside checkpoints", rows).columns(&[
            (TableColumn::label("Case"), &|(case, _)| self.name(&case.id)),
            (TableColumn::number("Whole cycles", "").csv(&cycles), &|(_, it)| cycles_cell(it)),
            (TableColumn::number("In checkpoints", "s"), &|(_, it)| Cell::number(Some(it.inside.seconds), grouped)),
            (TableColumn::number("Rate in them", "1/s"), &|(_, it)| Cell::figure(it.inside.rate)),
            (p99_column("p99 in them"), &|(_, it)| Cell::number(it.inside.p99_us, millis)),
            (TableColumn::number("Outside", "s"), &|(_, it)| Cell::number(Some(it.outside.seconds), grouped)),
            (TableColumn::number("Rate outside", "1/s"), &|(_, it)| Cell::figure(it.outside.rate)),
            (p99_column("p99 outside"), &|(_, it)| Cell::number(it.outside.p99_us, millis)),
            (TableColumn::number("By checkpoints", "pages"), &|(_, it)| {
                Cell::number(it.pages.map(|pages| pages.checkpointer), grouped)
            }),
            (TableColumn::number("By the background writer", "pages"), &|(_, it)| {
                Cell::number(it.pages.map(|pages| pages.background_writer), grouped)
            }),
            (TableColumn::number("By backends", "pages"), &|(_, it)| {
                Cell::number(it.pages.map(|pages| pages.backends), grouped)
            }),
            (TableColumn::estimate("Checkpoint sync per GB written", "checkpoint sync", "s/GB"), &|(_, it)| {
                Cell::estimate(it.sync_s_per_gb.as_ref(), None)
            }),
            (TableColumn::number("Autovacuum", "share").csv(&["autovacuum (0 to 1 of the time)"]), &|(_, it)| {
                Cell::share(it.vacuum_share)
            }),
        ]);
        table.note(
            "All trials. Only seconds entirely inside or entirely outside a checkpoint. Pages: table and index pages, by \
             writer.",
        )
    }

    /// Cases that stood side by side.
    pub fn turns(&self) -> Table {
        let between = ["wrote between them (0 to 1 of the bytes in them)"];
        let found = self.findings.turns.as_ref();
        let rounds = found.map_or(0, |found| found.rounds);
        let again = found.map(|found| found.made_again).filter(|again| *again > 0);
        let again =
            again.map_or_else(String::new, |again| format!(" ({again} more were repeated: the disk was disturbed)"));
        let ratios = match found.is_some_and(|found| found.is_taken_out) {
            true => "such an effect may be there: ratios of rates are without it, and rates are as measured",
            false => "no such effect was taken out of ratios",
        };
        let beside = found.map_or_else(String::new, beside);
        let rows = found.iter().flat_map(|found| &found.cases);
        let table = Table::over("turns", "Turns, side by side", rows).columns(&[
            (TableColumn::label("Case"), &|it| self.name(&it.case)),
            (TableColumn::number("Turns", ""), &|it| Cell::number(Some(it.turns), grouped)),
            (TableColumn::number("Wrote between them", "share").csv(&between), &|it| Cell::share(it.idle_share)),
            (TableColumn::estimate("Turns after its own", "turns after its own", "times all"), &|it| {
                Cell::estimate(it.after.as_ref(), None)
            }),
        ]);
        table.note(format!(
            "Each case had one turn in each of {rounds} rounds{again}. Wrote between them: bytes that the idle stack wrote while \
             others had their turns, not known in an existing folder. Turns after its own: the rate of whichever turn followed, against all turns; {ratios}.{beside}"
        ))
    }

    /// One row per window.
    pub fn windows(&self) -> Table {
        let rows = self.findings.trials.iter().filter_map(|trial| Some((trial, trial.window.as_ref()?)));
        let table = Table::over("windows", "The window of each trial", rows).columns(&[
            (TableColumn::label("Case"), &|(trial, _)| self.name(&trial.case)),
            (TableColumn::number("Trial", ""), &|(trial, _)| Cell::text(trial.trial.to_string())),
            (TableColumn::number("Waited for quiet", "s"), &|(trial, _)| {
                seconds(trial.settle.as_ref().map(|settle| settle.waited_us))
            }),
            (TableColumn::label("Quiet"), &|(trial, _)| {
                Cell::yes(trial.settle.as_ref().map(|settle| settle.quiet), false)
            }),
            (TableColumn::number("Warm-up", "cycles"), &|(_, it)| Cell::number(Some(it.warm_up_cycles), grouped)),
            (TableColumn::label("Settled"), &|(_, it)| Cell::yes(it.settled, false)),
            (TableColumn::number("Length", "s"), &|(_, it)| Cell::figure(Some(it.length_s))),
            (TableColumn::number("Whole cycles", ""), &|(_, it)| {
                Cell::number(Some(it.whole_cycles), grouped).style(if it.cut { "alarm" } else { "" })
            }),
            (TableColumn::number("New WAL segments", ""), &|(_, it)| Cell::number(it.wal_segments_new, grouped)),
            (TableColumn::number("First part", "1/s"), &|(_, it)| Cell::figure(it.trend.map(|trend| trend.first))),
            (TableColumn::number("Last part", "1/s"), &|(_, it)| Cell::figure(it.trend.map(|trend| trend.last))),
            (TableColumn::label("Trend"), &|(_, it)| Cell::yes(it.trend.map(|trend| trend.seen), true)),
        ]);
        table.note(
            "Settled: two cycles of the warm-up agreed in rate, WAL per commit and pages read per commit. Trend: first \
             whole cycle vs. last; without two whole cycles, first third of the window vs. last third.",
        )
    }

    /// Every checkpoint that overlaps a window.
    pub fn checkpoints(&self) -> Table {
        let trials = self.findings.trials.iter();
        let rows = trials.flat_map(|trial| {
            let found = trial.window.iter().flat_map(|window| &window.checkpoints);
            found.map(move |it| (trial, it, it.done.as_ref()))
        });
        let wal = ["WAL since the checkpoint before (B)"];
        let table = Table::over("checkpoints", "Every checkpoint of the windows", rows).columns(&[
            (TableColumn::label("Case"), &|(trial, ..)| self.name(&trial.case)),
            (TableColumn::number("Trial", ""), &|(trial, ..)| Cell::text(trial.trial.to_string())),
            (TableColumn::number("Began", "s"), &|(_, it, _)| Cell::number(Some(it.start_s), one_decimal)),
            (TableColumn::number("Ended", "s"), &|(_, it, _)| Cell::number(it.end_s, one_decimal)),
            (TableColumn::label("Why"), &|(_, it, _)| Cell::text(&it.cause)),
            (TableColumn::number("Pages", ""), &|it| count(it.2, |done| done.buffers)),
            (TableColumn::number("Write", "s"), &|it| seconds(it.2.map(|done| done.write_us))),
            (TableColumn::number("Sync", "s"), &|it| seconds(it.2.map(|done| done.sync_us))),
            (TableColumn::number("Files", ""), &|it| count(it.2, |done| done.files)),
            (TableColumn::number("Longest file", "ms"), &|it| {
                Cell::figure(it.2.map(|done| Micros(done.longest_us).millis()))
            }),
            (TableColumn::number("WAL since the last", "").csv(&wal), &|it| {
                Cell::number(it.2.map(|done| done.distance_bytes), |bytes| Bytes(bytes).to_string())
            }),
            (TableColumn::number("Segments added", ""), &|it| count(it.2, |done| done.wal_added)),
            (TableColumn::number("Removed", ""), &|it| count(it.2, |done| done.wal_removed)),
            (TableColumn::number("Recycled", ""), &|it| count(it.2, |done| done.wal_recycled)),
        ]);
        table.note(
            "From the server's log. Began and ended: after the first operation. Segments added: by the checkpointer; \
             those added by backends are in the table of windows.",
        )
    }
}

/// What else ratios are without.
fn beside(found: &TurnsFinding) -> String {
    let slower = |slope: f64| (1.0 - (slope * 0.1).exp()) * 100.0;
    let slope = found.others_slope;
    let words = " Ratios are also without what others' CPU time around turns cost";
    match found.others_slope_half_width {
        _ if slope >= 0.0 => String::new(),
        None => format!("{words}: {:.1} % for every 10 % of the CPUs, the most that is taken out.", slower(slope)),
        Some(half) if slope + half >= 0.0 => format!("{words}, which may be nothing."),
        Some(half) => {
            let [least, mean, most] = [slope + half, slope, slope - half].map(slower);
            format!("{words}: with 10 % of the CPUs taken, a turn was {mean:.1} % slower ({least:.1} to {most:.1} %).")
        }
    }
}

fn p99_column(title: &str) -> TableColumn {
    TableColumn::number(title, "ms").csv(&[&format!("{title} (us)")])
}

fn cycles_cell(window: &CaseWindow) -> Cell {
    let (fewest, most) = window.whole_cycles;
    let cycles = if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") };
    Cell::text(cycles).csv(vec![fewest.to_string(), most.to_string()])
}

fn count(done: Option<&CheckpointDone>, of: fn(&CheckpointDone) -> u64) -> Cell {
    Cell::number(done.map(of), grouped)
}

fn seconds(us: Option<u64>) -> Cell {
    Cell::figure(us.map(|us| Micros(us).seconds()))
}

fn one_decimal(seconds: f64) -> String {
    format!("{seconds:.1}")
}
