//! Findings of each case, as tables: strata, steadiness, synced writes, statements.
//!
//! Latencies and backend time have files of their own (`latencies`, `backend_time`).

use super::labelled::Labelled;
use super::table::{Cell, ShownColumn, Table, TableColumn};
use super::words::{bounded, estimate_text, fields, latency, optional, percent, percent_ends};
use crate::analyse::compare::answer::capital;
use crate::analyse::findings::{CaseFinding, DeviceStrata, Family, FlushShare, Steadiness, Strata, names};
use crate::units::grouped;

impl Labelled<'_> {
    /// Cost of one operation at each layer: a row per device of a case, or one without a device.
    pub fn strata(&self) -> Table {
        let rows = self.over_cases("strata", "One commit, at each layer", |case| {
            case.strata.iter().flat_map(|it| {
                let devices = it.devices.iter().cloned().chain(it.devices.is_empty().then(DeviceStrata::default));
                devices.map(move |device| (device, it))
            })
        });
        let mut columns = strata_columns().to_vec();
        let mut note =
            "Per commit; devices from the filesystem down. Amplification: bytes at the lowest device per byte \
                        of WAL. CPU: of all CPUs, without other programs."
                .to_owned();
        if self.findings.cases.iter().any(|case| case.strata.as_ref().is_some_and(|it| it.image.is_some())) {
            let writes = TableColumn::number("Added below", "").csv(&["writes added below the image (per commit)"]);
            columns.push((writes, &|(_, it)| Cell::figure(it.image.as_ref().map(|image| image.writes.value))));
            let bytes = TableColumn::number("Added below", "B").csv(&["bytes added below the image (per commit)"]);
            columns.push((bytes, &|(_, it)| Cell::figure(it.image.as_ref().map(|image| image.bytes.value))));
            note.push_str(
                " Added below: writes and bytes at the device that holds the image file, beyond those at the loop device; \
                 includes other programs' writes.",
            );
        }
        if self.findings.cases.iter().any(|case| flush_share(case).is_some()) {
            columns.push((flush_share_column(), &|(_, it)| flush_share_cell(it.flush_share.as_ref())));
            note.push_str(
                " Commit rate / sync rate: commits per second as % of the synced writes per second that one writer, \
                 without PostgreSQL, gets from the same stack; several clients may share a flush.",
            );
        }
        rows.columns(&columns).note(note)
    }

    /// Steadiness of the rate, by seconds.
    pub fn steadiness(&self) -> Table {
        let [tenth, half] = [["under a tenth of the median (s)"], ["under half of the median (s)"]];
        let [idles, stalls] =
            [&["longest time without a commit (s)"][..], &["slowest operation (us)", "in trial", "at second (s)"]];
        let rows = self.over_cases("steadiness", "Rate stability by second", |case| {
            case.steadiness.iter().map(|it| (case.log_sample.is_some(), it))
        });
        let table = rows.columns(&[
            (TableColumn::number("Seconds", "s").csv(&["seconds (s)"]), &|(_, it)| Cell::count(it.seconds, "")),
            (TableColumn::number("Spread", "sd/mean").csv(&["coefficient of variation (1)"]), &|(_, it)| {
                Cell::figure(Some(it.coefficient_of_variation))
            }),
            (TableColumn::number("Without a commit", "s").csv(&["without a commit (s)"]), &|(_, it)| {
                Cell::count(it.seconds_at_zero, "alarm")
            }),
            (TableColumn::number("Below 10 %", "s").csv(&tenth), &|(_, it)| {
                Cell::count(it.seconds_under_tenth, "alarm")
            }),
            (TableColumn::number("Below 50 %", "s").csv(&half), &|(_, it)| Cell::count(it.seconds_under_half, "")),
            (TableColumn::number("Longest idle", "").csv(idles), &|(is_sampled, it)| idle(*is_sampled, it)),
            (TableColumn::number("Longest stall", "").csv(stalls), &|(is_sampled, it)| stall(*is_sampled, it)),
        ]);
        table.note(
            "Whole seconds of all trials. Below 10 % / 50 %: seconds below that share of the median rate. Longest idle: \
             time without a commit of any client, to 1 ms. Longest stall: the slowest single operation seen by a client. Where \
             only a share of the transactions was logged, between them lies the true figure.",
        )
    }

    /// Every probe row of the cases that measure synced writes.
    pub fn synced(&self) -> Table {
        let rows = self
            .over_cases("synced", "Synced writes, by sync method", |case| case.synced.iter().flat_map(|it| &it.rows));
        let table = rows.columns(&[
            (TableColumn::label("Section"), &|row| Cell::text(section_title(row.family))),
            (TableColumn::label("Row"), &|row| Cell::text(&row.label)),
            (TableColumn::estimate("Rate", "rate", "1/s"), &|row| {
                Cell::estimate(row.rate.as_ref(), row.unavailable.as_deref())
            }),
            (TableColumn::units("p50", "ms", "ns"), &|row| ns_cell(row.latency.map(|latency| latency.p50_ns))),
            (TableColumn::units("p99", "ms", "ns"), &|row| ns_cell(row.latency.and_then(|latency| latency.p99_ns))),
            (TableColumn::units("slowest", "ms", "ns"), &|row| ns_cell(row.latency.map(|latency| latency.max_ns))),
            (TableColumn::text("Device work per operation").csv(&["device work"]), &|row| {
                Cell::text(row.device_work.clone().unwrap_or_default())
            }),
        ]);
        table.note(
            "As measured by pgstrata probe. Rates over trials; latencies and device work of the first trial. One write, \
             two writes, open_sync sizes, descriptor and not synced are the rows of pg_test_fsync.",
        )
    }

    /// Mean latency of each statement.
    pub fn statements(&self) -> Table {
        let table = self.over_cases("statements", "Latency of each statement", |case| &case.statements).columns(&[
            (TableColumn::label("Script"), &|it| Cell::text(&it.script)),
            (TableColumn::label("Statement"), &|it| Cell::text(&it.statement).style("code")),
            (TableColumn::number("Mean", "ms").csv(&["mean latency (us)"]), &|it| {
                Cell::figure(Some(it.latency_us_mean / 1e3)).csv(vec![it.latency_us_mean.to_string()])
            }),
            (TableColumn::number("Failures", ""), &|it| Cell::number(it.failures, grouped)),
        ]);
        table.note("Means as the tool reports them, over trials.")
    }
}

fn ns_cell(ns: Option<u64>) -> Cell {
    Cell::figure(ns.map(|ns| ns as f64 / 1e6)).csv(vec![optional(ns)])
}

/// Heading of a group of the probe's table.
pub(super) fn section_title(family: Family) -> String {
    match family {
        Family::OpenSyncSizes => names::of_family(family),
        Family::Wal => "WAL".to_owned(),
        Family::Newer => "Newer (not used by PostgreSQL)".to_owned(),
        _ => capital(&names::of_family(family)),
    }
}

fn strata_columns<'r>() -> [ShownColumn<'r, (DeviceStrata, &'r Strata)>; 13] {
    [
        (TableColumn::text("Device").csv(&["device", "node"]), &|(device, _)| {
            let none = || Cell::text("no device").style("absent").csv(vec![String::new(); 2]);
            if device.node.is_empty() { none() } else { Cell::device(&device.device, &device.node) }
        }),
        (TableColumn::units("Writes", "", "per commit"), &|(device, _)| Cell::figure(device.writes)),
        (TableColumn::units("Bytes a write", "", "B"), &|(device, _)| Cell::bytes(device.bytes_per_write)),
        (TableColumn::units("Written", "", "B per commit"), &|(device, _)| Cell::bytes(device.write_bytes)),
        (TableColumn::units("Flushes", "", "per commit"), &|(device, _)| Cell::figure(device.flushes)),
        (TableColumn::units("Reads", "", "per commit"), &|(device, _)| Cell::figure(device.reads)),
        (TableColumn::number("Busy", "share").csv(&["device busy (0 to 1)"]), &|(device, _)| Cell::share(device.busy)),
        (TableColumn::units("WAL", "B", "B per commit"), &|(_, it)| Cell::figure(it.wal_bytes)),
        (TableColumn::units("WAL records", "", "per commit"), &|(_, it)| Cell::figure(it.wal_records)),
        (TableColumn::units("Full-page images", "", "per commit"), &|(_, it)| Cell::figure(it.full_page_images)),
        (TableColumn::units("WAL syncs", "", "per commit"), &|(_, it)| Cell::figure(it.wal_syncs)),
        (TableColumn::number("Amplifi\u{ad}cation", "").csv(&["write amplification (B per B of WAL)"]), &|(_, it)| {
            Cell::figure(it.write_amplification)
        }),
        (TableColumn::units("CPU", "us", "us per commit"), &|(_, it)| Cell::figure(it.cpu_us)),
    ]
}

/// Commit rate of a case as a share of its stack's own sync rate.
pub(super) fn flush_share(case: &CaseFinding) -> Option<&FlushShare> {
    case.strata.as_ref()?.flush_share.as_ref()
}

fn flush_share_column() -> TableColumn {
    TableColumn::number("Commit rate / sync rate", "").csv(&[
        "commits for each synced write of one writer (1)",
        "the same low (1)",
        "the same high (1)",
        "synced writes of one writer (1/s)",
        "wal_sync_method",
        "sync case",
    ])
}

fn flush_share_cell(found: Option<&FlushShare>) -> Cell {
    let Some(found) = found else { return Cell::none(6).style("absent") };
    let others = vec![found.syncs.value.to_string(), found.method.clone(), found.sync_case.clone()];
    Cell::text(percent(found.share.value))
        .aside(percent_ends(&found.share).unwrap_or_default())
        .remark(Some(format!("of {} {}/s", estimate_text(&found.syncs).0, found.method)))
        .csv([fields(Some(&found.share)), others].concat())
}

/// Slowest operation, and where it was.
fn stall(is_sampled: bool, found: &Steadiness) -> Cell {
    let at = found.longest_stall_at;
    let longest = found.longest_stall_us.map(|us| bounded("at least", is_sampled, latency(us)));
    let cell = Cell::text(longest.unwrap_or_else(|| "not measured".to_owned()));
    let cell = cell.aside(at.map(|(trial, second)| format!("trial {trial}, second {second}")).unwrap_or_default());
    cell.csv(vec![optional(found.longest_stall_us), optional(at.map(|at| at.0)), optional(at.map(|at| at.1))])
}

/// Longest time without a commit, an alarm from one second on. If only whole seconds are known, the seconds next to
/// those without a commit may also have lacked one nearly throughout, so a range is shown.
fn idle(is_sampled: bool, found: &Steadiness) -> Cell {
    let seconds = found.longest_zero_s;
    let (text, csv, is_long) = match (found.longest_idle_us, seconds) {
        (Some(0), _) => ("under 2 ms".to_owned(), "0".to_owned(), false),
        (Some(us), _) => (bounded("at most", is_sampled, latency(us)), (us as f64 / 1e6).to_string(), us >= 1_000_000),
        (None, 0) => ("under 2 s".to_owned(), String::new(), false),
        (None, _) => (format!("{seconds} to {} s", seconds + 2), String::new(), true),
    };
    Cell::text(text).csv(vec![csv]).style(if is_long { "alarm" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampled_log_bounds_the_longest_idle_time_and_stall() {
        let found = Steadiness { longest_stall_us: Some(5_000), ..steadiness(0, Some(3_000)) };
        assert_eq!([idle(false, &found).text, stall(false, &found).text], ["3 ms", "5 ms"]);
        assert_eq!([idle(true, &found).text, stall(true, &found).text], ["at most 3 ms", "at least 5 ms"]);
        assert_eq!(idle(true, &steadiness(0, Some(0))).text, "under 2 ms");
    }

    fn steadiness(longest_zero_s: u64, longest_idle_us: Option<u64>) -> Steadiness {
        Steadiness {
            seconds: 60,
            coefficient_of_variation: 0.1,
            seconds_at_zero: longest_zero_s,
            seconds_under_tenth: longest_zero_s,
            seconds_under_half: longest_zero_s,
            longest_zero_s,
            longest_idle_us,
            longest_stall_us: None,
            longest_stall_at: None,
        }
    }

    #[test]
    fn idle_time_in_whole_seconds_is_shown_as_a_range() {
        let shown = |zero_s, idle_us| {
            let cell = idle(false, &steadiness(zero_s, idle_us));
            (cell.text.clone(), cell.csv.concat(), cell.style == "alarm")
        };
        assert_eq!(shown(0, None), ("under 2 s".to_owned(), String::new(), false));
        assert_eq!(shown(3, None), ("3 to 5 s".to_owned(), String::new(), true));
        assert_eq!(shown(3, Some(3_250_000)).1, "3.25");
        assert_eq!(shown(0, Some(0)), ("under 2 ms".to_owned(), "0".to_owned(), false));
    }
}
