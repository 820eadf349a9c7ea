//! Contents of the measured windows, as tables: work inside and outside of checkpoints, each window, each checkpoint.

use super::labelled::Labelled;
use super::table::{Cell, Table, TableColumn};
use super::words::millis;
use crate::analyse::findings::{CaseWindow, PagesWritten, TurnsFinding};
use crate::units::{Bytes, Micros, grouped};

impl Labelled<'_> {
    /// Rate and 99th percentile inside and outside of checkpoints, and writers of pages.
    pub fn phases(&self) -> Table {
        let cycles = ["fewest whole cycles", "most whole cycles"];
        let table = self.over_cases("phases", "Inside and outside checkpoints", |case| &case.window).columns(&[
            (TableColumn::number("Whole cycles", "").csv(&cycles), &|it| cycles_cell(it)),
            (TableColumn::number("In checkpoints", "s"), &|it| Cell::number(Some(it.inside.seconds), grouped)),
            (TableColumn::number("Rate in them", "1/s"), &|it| Cell::figure(it.inside.rate)),
            (TableColumn::units("p99 in them", "ms", "us"), &|it| Cell::number(it.inside.p99_us, millis)),
            (TableColumn::number("Outside", "s"), &|it| Cell::number(Some(it.outside.seconds), grouped)),
            (TableColumn::number("Rate outside", "1/s"), &|it| Cell::figure(it.outside.rate)),
            (TableColumn::units("p99 outside", "ms", "us"), &|it| Cell::number(it.outside.p99_us, millis)),
            (TableColumn::number("By checkpoints", "pages"), &|it| {
                count(it.pages.as_ref(), |pages| pages.checkpointer)
            }),
            (TableColumn::number("By the background writer", "pages"), &|it| {
                count(it.pages.as_ref(), |pages| pages.background_writer)
            }),
            (TableColumn::number("By backends", "pages"), &|it| by_backends(it.pages.as_ref())),
            (TableColumn::estimate("Checkpoint sync per GB written", "checkpoint sync", "s/GB"), &|it| {
                Cell::estimate(it.sync_s_per_gb.as_ref(), None)
            }),
            (TableColumn::number("Autovacuum", "share").csv(&["autovacuum (0 to 1 of the time)"]), &|it| {
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
        let rows = self.over_trials("windows", "The window of each trial", |trial| {
            trial.window.iter().map(|it| (trial.settle.as_ref(), it))
        });
        let table = rows.columns(&[
            (TableColumn::number("Waited for quiet", "s"), &|(settle, _)| seconds(settle.map(|it| it.waited_us))),
            (TableColumn::label("Quiet"), &|(settle, _)| Cell::yes(settle.map(|it| it.quiet), false)),
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
        let wal = ["WAL since the checkpoint before (B)"];
        let rows = self.over_trials("checkpoints", "Every checkpoint of the windows", |trial| {
            let found = trial.window.iter().flat_map(|window| &window.checkpoints);
            found.map(|it| (it, it.done.as_ref()))
        });
        let table = rows.columns(&[
            (TableColumn::number("Began", "s"), &|(it, _)| Cell::number(Some(it.start_s), one_decimal)),
            (TableColumn::number("Ended", "s"), &|(it, _)| Cell::number(it.end_s, one_decimal)),
            (TableColumn::label("Why"), &|(it, _)| Cell::text(&it.cause)),
            (TableColumn::number("Pages", ""), &|(_, done)| count(*done, |done| done.buffers)),
            (TableColumn::number("Write", "s"), &|(_, done)| seconds(done.map(|done| done.write_us))),
            (TableColumn::number("Sync", "s"), &|(_, done)| seconds(done.map(|done| done.sync_us))),
            (TableColumn::number("Files", ""), &|(_, done)| count(*done, |done| done.files)),
            (TableColumn::number("Longest file", "ms"), &|(_, done)| {
                Cell::figure(done.map(|done| Micros(done.longest_us).millis()))
            }),
            (TableColumn::number("WAL since the last", "").csv(&wal), &|(_, done)| {
                Cell::number(done.map(|done| done.distance_bytes), |bytes| Bytes(bytes).to_string())
            }),
            (TableColumn::number("Segments added", ""), &|(_, done)| count(*done, |done| done.wal_added)),
            (TableColumn::number("Removed", ""), &|(_, done)| count(*done, |done| done.wal_removed)),
            (TableColumn::number("Recycled", ""), &|(_, done)| count(*done, |done| done.wal_recycled)),
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

fn cycles_cell(window: &CaseWindow) -> Cell {
    let (fewest, most) = window.whole_cycles;
    let cycles = if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") };
    Cell::text(cycles).csv(vec![fewest.to_string(), most.to_string()])
}

fn count<T>(found: Option<T>, of: fn(T) -> u64) -> Cell {
    Cell::number(found.map(of), grouped)
}

/// Pages, or why they are not known.
fn by_backends(pages: Option<&PagesWritten>) -> Cell {
    let why = pages.and_then(|pages| pages.backends_unavailable.as_deref()).unwrap_or_default();
    Cell::number(pages.and_then(|pages| pages.backends), grouped).aside(why)
}

fn seconds(us: Option<u64>) -> Cell {
    Cell::figure(us.map(|us| Micros(us).seconds()))
}

fn one_decimal(seconds: f64) -> String {
    format!("{seconds:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_pages_of_backends_show_their_reason() {
        let missing = PagesWritten { backends_unavailable: Some("why".to_owned()), ..PagesWritten::default() };
        let cell = by_backends(Some(&missing));
        assert_eq!(
            (cell.text.as_str(), cell.aside.as_deref(), cell.csv.as_slice()),
            ("–", Some("why"), &[String::new()][..])
        );
        let counted = PagesWritten { backends: Some(4_400), ..PagesWritten::default() };
        assert_eq!((by_backends(Some(&counted)).aside, by_backends(None).aside), (None, None));
    }
}
