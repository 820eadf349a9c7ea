//! Work of each device per second, with iostat's figures.

use super::labelled::Labelled;
use super::table::{Cell, Table, TableColumn};
use super::words::percent;

impl Labelled<'_> {
    /// A row per device of each case, from the filesystem down.
    pub fn devices(&self) -> Table {
        let columns = vec![
            TableColumn::text("Case").csv(&["case"]),
            TableColumn::text("Device").csv(&["device", "node"]),
            number("Writes", "IOPS"),
            number("Written", "MB/s"),
            number("Write latency, mean", "ms"),
            number("Flushes", "1/s"),
            number("Flush latency, mean", "ms"),
            number("Reads", "IOPS"),
            number("Read", "MB/s"),
            number("Read latency, mean", "ms"),
            number("Queue depth, mean", ""),
            TableColumn::number("Busy", "share").csv(&["device busy (0 to 1)"]),
        ];
        let note = "From /proc/diskstats over the measured time; devices from the filesystem down. The kernel counts whole \
                    milliseconds, so a mean below one is of many requests. It has no percentiles of single requests.";
        let table = Table::new("devices", "Devices while it was measured", columns).note(note);
        let rows =
            self.findings.cases.iter().flat_map(|case| {
                case.strata.iter().flat_map(|strata| &strata.devices).map(move |device| (case, device))
            });
        table.rows(rows.map(|(case, device)| {
            let io = &device.io;
            vec![
                self.name(&case.id),
                Cell::device(&device.device, &device.node),
                Cell::figure(io.writes_per_s),
                Cell::figure(io.write_mb_per_s),
                Cell::figure(io.write_ms_mean),
                Cell::figure(io.flushes_per_s),
                Cell::figure(io.flush_ms_mean),
                Cell::figure(io.reads_per_s),
                Cell::figure(io.read_mb_per_s),
                Cell::figure(io.read_ms_mean),
                Cell::figure(io.queue_depth_mean),
                Cell::number(device.busy, percent),
            ]
        }))
    }
}

/// A column whose title begins in lower case in the CSV.
fn number(title: &str, unit: &str) -> TableColumn {
    let name = title.to_lowercase();
    let csv = if unit.is_empty() { name } else { format!("{name} ({unit})") };
    TableColumn::number(title, unit).csv(&[&csv])
}
