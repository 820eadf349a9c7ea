//! Series of one trial, from the client and from telemetry, each with its title, unit and group.
//!
//! Titles contain no loop device numbers, so that the same series of two trials or stacks has the same title.

use crate::analyse::findings::Series;
use crate::analyse::trial::input::Seconds;
use crate::analyse::trial::series::{Caption, Ticks, bucketed, rates, step};
use crate::record::built::{Below, StackFacts};
use crate::record::claim::Claim;
use crate::record::columns::{self, ColumnDef};
use crate::record::stack::BaseName;
use crate::record::trial::TrialRecord;
use crate::store::seconds::CountColumn;

const MIB: f64 = (1u64 << 20) as f64;

/// Title, unit and group of a series, its column, and the divisor (gauges) or factor (counters) of its values.
type Chart = (&'static str, &'static str, &'static str, ColumnDef, f64);

const LATENCIES: [Chart; 3] = [
    ("p50", "ms", "latency", columns::CLIENT_LATENCY_US_P50, 1e3),
    ("p99", "ms", "latency", columns::CLIENT_LATENCY_US_P99, 1e3),
    ("p99.9", "ms", "latency", columns::CLIENT_LATENCY_US_P999, 1e3),
];

const MEMORY: [Chart; 4] = [
    ("dirty", "MiB", "memory_dirty", columns::MEM_DIRTY_BYTES, MIB),
    ("under writeback", "MiB", "memory_dirty", columns::MEM_WRITEBACK_BYTES, MIB),
    ("page cache", "MiB", "memory", columns::MEM_CACHED_BYTES, MIB),
    ("available", "MiB", "memory", columns::MEM_AVAILABLE_BYTES, MIB),
];

/// Converts microseconds per second to per cent.
const PRESSURE: [Chart; 4] = [
    ("some task waits for a CPU", "%", "pressure", columns::PSI_CPU_SOME_US, 1e-4),
    ("some task waits for I/O", "%", "pressure", columns::PSI_IO_SOME_US, 1e-4),
    ("all tasks wait for I/O", "%", "pressure", columns::PSI_IO_FULL_US, 1e-4),
    ("some task waits for memory", "%", "pressure", columns::PSI_MEMORY_SOME_US, 1e-4),
];

const POSTGRES: [Chart; 8] = [
    ("WAL", "MiB/s", "wal", columns::PG_WAL_BYTES, 1.0 / MIB),
    ("WAL syncs", "1/s", "wal_syncs", columns::PG_WAL_SYNCS, 1.0),
    ("full-page images", "1/s", "wal_full_page_images", columns::PG_WAL_FPI, 1.0),
    ("by checkpoints", "1/s", "buffers_written", columns::PG_BUFFERS_CHECKPOINT, 1.0),
    ("by backends", "1/s", "buffers_written", columns::PG_BUFFERS_BACKEND, 1.0),
    ("blocks read into shared_buffers", "1/s", "blocks_read", columns::PG_BLKS_READ, 1.0),
    ("timed", "1/s", "checkpoints", columns::PG_CHECKPOINTS_TIMED, 1.0),
    ("requested", "1/s", "checkpoints", columns::PG_CHECKPOINTS_REQUESTED, 1.0),
];

/// Data shared by all series of a trial.
pub struct Charts<'a> {
    seconds: &'a Seconds,
    ticks: Ticks,
    length: usize,
    most: usize,
    series: Vec<Series>,
}

/// Throughput and slowest operation of each whole second, in at most `most` buckets.
pub fn client(seconds: &Seconds, whole: &[Option<u64>], most: usize, unit: &str) -> (Option<Series>, Option<Series>) {
    let caption = Caption { title: "throughput", unit, group: "client" };
    let throughput = bucketed(caption, whole.len(), most, |row| whole[row - 1].map(|done| done as f64));
    let caption = Caption { title: "slowest operation", unit: "ms", group: "client" };
    let slowest = seconds.counts(&columns::CLIENT_LATENCY_US_MAX);
    let latency =
        slowest.and_then(|us| bucketed(caption, whole.len(), most, |row| us.at(row).map(|us| us as f64 / 1e3)));
    (throughput, latency)
}

/// All telemetry series of a trial over `length` seconds, in at most `most` buckets each.
pub fn telemetry(record: &TrialRecord, seconds: &Seconds, length: usize, most: usize) -> Vec<Series> {
    let mut charts = Charts { seconds, ticks: Ticks::of(seconds), length, most, series: Vec::new() };
    if let Some(stack) = &record.stack {
        let data = if stack.wal.is_some() { "data on " } else { "" };
        charts.devices(stack, stack.data.as_ref(), data);
        charts.devices(stack, stack.wal.as_ref(), "pg_wal on ");
    }
    charts.gauges(&LATENCIES);
    charts.cpu();
    charts.gauges(&MEMORY);
    charts.counters(&PRESSURE);
    charts.counters(&POSTGRES);
    charts.series
}

impl Charts<'_> {
    fn add(&mut self, caption: Caption<'_>, value: impl FnMut(usize) -> Option<f64>) {
        self.series.extend(bucketed(caption, self.length, self.most, value));
    }

    /// Adds a counter as a rate, scaled by `factor`.
    fn add_rate(&mut self, caption: Caption<'_>, counter: Option<&CountColumn>, factor: f64) {
        if let Some(counter) = counter {
            let mut rate = rates(counter, &self.ticks);
            let series = bucketed(caption, self.length, self.most, |row| rate(row).map(|rate| rate * factor));
            self.series.extend(series);
        }
    }

    /// Adds the devices directly below the filesystem and the lowest visible ones.
    fn devices(&mut self, stack: &StackFacts, base: Option<&BaseName>, prefix: &str) {
        let columns = stack.device_columns();
        let column = |below: &Below<'_>| columns.iter().find(|(name, _, _)| *name == below.name()).map(|(_, it, _)| it);
        let mut there: Vec<(Below<'_>, &String)> = Vec::new();
        for below in stack.devices_below(base) {
            let Some(of) = column(&below) else { continue };
            if self.seconds.device_counts(of, &columns::DEVICE_WRITES).is_some_and(CountColumn::any) {
                there.push((below, of));
            }
        }
        let depths: Vec<u32> = there.iter().map(|(below, _)| below.depth).collect();
        let ends = [depths.iter().min().copied(), depths.iter().max().copied()];
        for (below, of) in there.iter().filter(|(below, _)| ends.contains(&Some(below.depth))) {
            let label = format!("{prefix}{}", below.name());
            self.one_device(of, &label, below.node.promise(Claim::FlushesUncounted).is_none());
        }
    }

    fn one_device(&mut self, prefix: &str, label: &str, counts_flushes: bool) {
        let mut series = vec![
            ("written", "MiB/s", "device_written", columns::DEVICE_WRITE_BYTES, 1.0 / MIB),
            ("writes", "1/s", "device_writes", columns::DEVICE_WRITES, 1.0),
            ("read", "MiB/s", "device_read", columns::DEVICE_READ_BYTES, 1.0 / MIB),
            // Milliseconds per second to per cent.
            ("busy", "%", "device_busy", columns::DEVICE_BUSY_MS, 0.1),
            // Milliseconds of all requests per second to requests.
            ("queue depth", "requests", "device_queue", columns::DEVICE_QUEUE_MS, 1e-3),
        ];
        let mut latencies = vec![
            ("write latency", "device_write_latency", columns::DEVICE_WRITE_MS, columns::DEVICE_WRITES),
            ("read latency", "device_read_latency", columns::DEVICE_READ_MS, columns::DEVICE_READS),
        ];
        if counts_flushes {
            series.push(("flushes", "1/s", "device_flushes", columns::DEVICE_FLUSHES, 1.0));
            let of = ("flush latency", "device_flush_latency", columns::DEVICE_FLUSH_MS, columns::DEVICE_FLUSHES);
            latencies.push(of);
        }
        for (what, unit, group, column, factor) in series {
            let title = format!("{label}: {what}");
            let counter = self.seconds.device_counts(prefix, &column);
            self.add_rate(Caption { title: &title, unit, group }, counter, factor);
        }
        for (what, group, time, number) in latencies {
            let (time, number) =
                (self.seconds.device_counts(prefix, &time), self.seconds.device_counts(prefix, &number));
            let Some((time, number)) = time.zip(number) else { continue };
            let title = format!("{label}: {what}");
            self.add(Caption { title: &title, unit: "ms", group }, |row| mean_time(time, number, row));
        }
    }

    fn gauges(&mut self, gauges: &[Chart]) {
        for (title, unit, group, column, divisor) in gauges {
            if let Some(gauge) = self.seconds.counts(column) {
                self.add(Caption { title, unit, group }, |row| gauge.at(row).map(|value| value as f64 / divisor));
            }
        }
    }

    fn counters(&mut self, counters: &[Chart]) {
        for (title, unit, group, column, factor) in counters {
            self.add_rate(Caption { title, unit, group }, self.seconds.counts(column), *factor);
        }
    }

    fn cpu(&mut self) {
        let states: Vec<&CountColumn> =
            columns::CPU_TIMES.iter().filter_map(|state| self.seconds.counts(state)).collect();
        if states.len() < columns::CPU_TIMES.len() {
            return;
        }
        let sum = |row: usize| states.iter().map(|state| step(state, row)).sum::<Option<f64>>();
        let totals: Vec<f64> = (0..self.seconds.rows()).map(|row| sum(row).unwrap_or(0.0)).collect();
        let groups: [(&str, &[ColumnDef]); 4] = [
            ("user", &[columns::CPU_USER_NS, columns::CPU_NICE_NS]),
            ("system", &[columns::CPU_SYSTEM_NS, columns::CPU_IRQ_NS, columns::CPU_SOFTIRQ_NS]),
            ("waiting for I/O", &[columns::CPU_IOWAIT_NS]),
            ("stolen", &[columns::CPU_STEAL_NS]),
        ];
        for (title, members) in groups {
            let members: Vec<&CountColumn> = members.iter().filter_map(|state| self.seconds.counts(state)).collect();
            self.add(Caption { title, unit: "%", group: "cpu" }, |row| {
                let total = totals.get(row).copied().filter(|total| *total > 0.0)?;
                let part: Option<f64> = members.iter().map(|state| step(state, row)).sum();
                part.map(|part| 100.0 * part / total)
            });
        }
    }
}

/// Mean duration of the operations that ended in a row's second, from two counters; `None` if none ended.
fn mean_time(time: &CountColumn, number: &CountColumn, row: usize) -> Option<f64> {
    let number = step(number, row).filter(|number| *number > 0.0)?;
    Some(step(time, row)? / number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_time_is_absent_in_seconds_where_no_operation_ended() {
        let mut seconds = Seconds::new(4);
        let all = [true, true, true, false];
        seconds.push_counts(columns::DEVICE_WRITE_MS.name("dev_sda"), vec![5, 25, 25, 99], &all);
        seconds.push_counts(columns::DEVICE_WRITES.name("dev_sda"), vec![1, 9, 9, 99], &all);
        let of = |column| seconds.device_counts("dev_sda", &column).unwrap();
        let (time, number) = (of(columns::DEVICE_WRITE_MS), of(columns::DEVICE_WRITES));
        let found: Vec<_> = (0..4).map(|row| mean_time(time, number, row)).collect();
        assert_eq!(found, [None, Some(2.5), None, None]);
    }
}
