//! Work of each device per second, with iostat's figures.

use super::labelled::Labelled;
use super::table::{Cell, Table, TableColumn};

impl Labelled<'_> {
    /// A row per device of each case, from the filesystem down.
    pub fn devices(&self) -> Table {
        let rows = self.over_cases("devices", "Devices while it was measured", |case| {
            case.strata.iter().flat_map(|it| &it.devices)
        });
        let table = rows.columns(&[
            (TableColumn::text("Device").csv(&["device", "node"]), &|it| Cell::device(&it.device, &it.node)),
            (number("Writes", "IOPS"), &|it| Cell::figure(it.io.writes_per_s)),
            (number("Written", "MB/s"), &|it| Cell::figure(it.io.write_mb_per_s)),
            (number("Write latency, mean", "ms"), &|it| Cell::figure(it.io.write_ms_mean)),
            (number("Flushes", "1/s"), &|it| Cell::figure(it.io.flushes_per_s)),
            (number("Flush latency, mean", "ms"), &|it| Cell::figure(it.io.flush_ms_mean)),
            (number("Reads", "IOPS"), &|it| Cell::figure(it.io.reads_per_s)),
            (number("Read", "MB/s"), &|it| Cell::figure(it.io.read_mb_per_s)),
            (number("Read latency, mean", "ms"), &|it| Cell::figure(it.io.read_ms_mean)),
            (number("Queue depth, mean", ""), &|it| Cell::figure(it.io.queue_depth_mean)),
            (TableColumn::number("Busy", "share").csv(&["device busy (0 to 1)"]), &|it| Cell::share(it.busy)),
        ]);
        table.note(
            "From /proc/diskstats over the measured time; devices from the filesystem down. The kernel counts whole \
             milliseconds, so a mean below one is of many requests. It has no percentiles of single requests.",
        )
    }
}

/// A column whose title begins in lower case in the CSV.
fn number(title: &str, unit: &str) -> TableColumn {
    let name = title.to_lowercase();
    let csv = if unit.is_empty() { name } else { format!("{name} ({unit})") };
    TableColumn::number(title, unit).csv(&[&csv])
}
