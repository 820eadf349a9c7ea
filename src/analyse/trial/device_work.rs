//! Work of a device by its counters in /proc/diskstats: requests, bytes and times, per operation and per second.

use crate::analyse::findings::DeviceIo;
use crate::analyse::trial::counters::{Flow, Operations};
use crate::analyse::trial::input::Seconds;
use crate::analyse::trial::reads::DEVICE_COLUMNS;
use crate::record::columns::{
    DEVICE_BUSY_MS, DEVICE_FLUSH_MS, DEVICE_FLUSHES, DEVICE_QUEUE_MS, DEVICE_READ_BYTES, DEVICE_READ_MS, DEVICE_READS,
    DEVICE_WRITE_BYTES, DEVICE_WRITE_MS, DEVICE_WRITES, DeviceColumn,
};

/// Counters of one or more devices, in one trial or over several.
#[derive(Debug, Clone, Default)]
pub struct DeviceFlows([Flow; DEVICE_COLUMNS.len()]);

impl DeviceFlows {
    /// Counters of one device in one trial.
    pub fn of(seconds: &Seconds, prefix: &str, operations: &Operations) -> DeviceFlows {
        DeviceFlows(DEVICE_COLUMNS.map(|column| {
            let mut flow = Flow::default();
            flow.add(seconds, seconds.device_counts(prefix, &column), operations);
            flow
        }))
    }

    pub fn flow(&self, column: DeviceColumn) -> Flow {
        DEVICE_COLUMNS.iter().zip(self.0).find(|(known, _)| **known == column).map(|(_, flow)| flow).unwrap_or_default()
    }

    /// For a device whose flushes are not counted: excludes them from the figures per operation.
    pub fn leave_out_flushes(&mut self) {
        for (_, flow) in DEVICE_COLUMNS.iter().zip(&mut self.0).filter(|(column, _)| **column == DEVICE_FLUSHES) {
            (flow.amount, flow.operations) = (0.0, 0.0);
        }
    }

    /// Adds the work of another trial (`operations`: a sum), or of another device in the same trials (`operations`: the
    /// maximum).
    pub fn merge(&mut self, other: &DeviceFlows, operations: fn(f64, f64) -> f64) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, flow)| own.merge(flow, operations));
    }

    /// Share of the time the device was busy.
    pub fn busy(&self) -> Option<f64> {
        self.flow(DEVICE_BUSY_MS).per_second().map(|ms| (ms / 1e3).min(1.0))
    }

    /// Figures in the units storage engineers use.
    pub fn io(&self) -> DeviceIo {
        let per_second = |column| self.flow(column).per_second();
        let mean = |ms, of| self.flow(ms).per_grown(&self.flow(of));
        DeviceIo {
            reads_per_s: per_second(DEVICE_READS),
            read_mb_per_s: per_second(DEVICE_READ_BYTES).map(|bytes| bytes / 1e6),
            read_ms_mean: mean(DEVICE_READ_MS, DEVICE_READS),
            writes_per_s: per_second(DEVICE_WRITES),
            write_mb_per_s: per_second(DEVICE_WRITE_BYTES).map(|bytes| bytes / 1e6),
            write_ms_mean: mean(DEVICE_WRITE_MS, DEVICE_WRITES),
            flushes_per_s: per_second(DEVICE_FLUSHES),
            flush_ms_mean: mean(DEVICE_FLUSH_MS, DEVICE_FLUSHES),
            queue_depth_mean: per_second(DEVICE_QUEUE_MS).map(|ms| ms / 1e3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::columns::TIME_US;

    #[test]
    fn rates_latencies_and_queue_length_follow_from_the_device_counters() {
        let mut seconds = Seconds::new(3);
        let all = [true; 3];
        seconds.push_counts(TIME_US.name, vec![0, 1_000_000, 2_000_000], &all);
        for (column, end) in [
            (DEVICE_WRITES, 4000),
            (DEVICE_WRITE_BYTES, 32_000_000),
            (DEVICE_WRITE_MS, 6000),
            (DEVICE_FLUSHES, 1000),
            (DEVICE_FLUSH_MS, 500),
            (DEVICE_READS, 0),
            (DEVICE_READ_MS, 0),
            (DEVICE_QUEUE_MS, 7000),
        ] {
            seconds.push_counts(column.name("dev_vda"), vec![0, end / 2, end], &all);
        }
        let mut work = DeviceFlows::default();
        (0..3).for_each(|_| work.merge(&DeviceFlows::of(&seconds, "dev_vda", &Operations::default()), f64::max));
        let found = work.io();
        assert_eq!(
            (found.writes_per_s, found.write_mb_per_s, found.write_ms_mean),
            (Some(2000.0), Some(16.0), Some(1.5))
        );
        assert_eq!((found.flushes_per_s, found.flush_ms_mean), (Some(500.0), Some(0.5)));
        assert_eq!((found.reads_per_s, found.read_ms_mean, found.read_mb_per_s), (Some(0.0), None, None));
        assert_eq!(found.queue_depth_mean, Some(3.5));
    }
}
