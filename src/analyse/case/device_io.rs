//! What a device did a second while it was measured, as storage engineers read it: from /proc/diskstats.

use crate::analyse::findings::DeviceIo;
use crate::analyse::trial::counters::{growth, span_s};
use crate::analyse::trial::input::Seconds;
use crate::record::columns::{
    DEVICE_FLUSH_MS, DEVICE_FLUSHES, DEVICE_QUEUE_MS, DEVICE_READ_BYTES, DEVICE_READ_MS, DEVICE_READS,
    DEVICE_WRITE_BYTES, DEVICE_WRITE_MS, DEVICE_WRITES, DeviceColumn, TIME_US,
};

/// One counter over the trials.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    amount: f64,
    seconds: f64,
}

impl Sum {
    fn add(&mut self, seconds: &Seconds, prefix: &str, column: DeviceColumn) {
        let Some(grown) = seconds.device_counts(prefix, &column).and_then(growth) else { return };
        self.amount += grown.amount as f64;
        self.seconds += span_s(seconds.counts(&TIME_US), grown.first, grown.last);
    }

    fn a_second(self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.amount / self.seconds)
    }

    /// Of each unit of another counter.
    fn of_each(self, other: Sum) -> Option<f64> {
        (self.seconds > 0.0 && other.amount > 0.0).then(|| self.amount / other.amount)
    }
}

/// The counters of one device over the trials of a case.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceIoSums {
    reads: [Sum; 3],
    writes: [Sum; 3],
    flushes: [Sum; 2],
    queue_ms: Sum,
}

impl DeviceIoSums {
    pub fn add(&mut self, seconds: &Seconds, prefix: &str) {
        let each = |sums: &mut [Sum], columns: &[DeviceColumn]| {
            sums.iter_mut().zip(columns).for_each(|(sum, column)| sum.add(seconds, prefix, *column));
        };
        each(&mut self.reads, &[DEVICE_READS, DEVICE_READ_BYTES, DEVICE_READ_MS]);
        each(&mut self.writes, &[DEVICE_WRITES, DEVICE_WRITE_BYTES, DEVICE_WRITE_MS]);
        each(&mut self.flushes, &[DEVICE_FLUSHES, DEVICE_FLUSH_MS]);
        each(std::slice::from_mut(&mut self.queue_ms), &[DEVICE_QUEUE_MS]);
    }

    #[must_use]
    pub fn finding(&self) -> DeviceIo {
        let ([reads, read_bytes, read_ms], [writes, write_bytes, write_ms]) = (self.reads, self.writes);
        let [flushes, flush_ms] = self.flushes;
        let mb = |bytes: Sum| bytes.a_second().map(|bytes| bytes / 1e6);
        DeviceIo {
            reads_per_s: reads.a_second(),
            read_mb_per_s: mb(read_bytes),
            read_ms_mean: read_ms.of_each(reads),
            writes_per_s: writes.a_second(),
            write_mb_per_s: mb(write_bytes),
            write_ms_mean: write_ms.of_each(writes),
            flushes_per_s: flushes.a_second(),
            flush_ms_mean: flush_ms.of_each(flushes),
            queue_depth_mean: self.queue_ms.a_second().map(|ms| ms / 1e3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_latencies_and_the_queue_follow_from_the_counters_and_what_did_nothing_has_no_latency() {
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
        let mut sums = DeviceIoSums::default();
        (0..3).for_each(|_| sums.add(&seconds, "dev_vda"));
        let found = sums.finding();
        assert_eq!(
            (found.writes_per_s, found.write_mb_per_s, found.write_ms_mean),
            (Some(2000.0), Some(16.0), Some(1.5))
        );
        assert_eq!((found.flushes_per_s, found.flush_ms_mean), (Some(500.0), Some(0.5)));
        assert_eq!((found.reads_per_s, found.read_ms_mean, found.read_mb_per_s), (Some(0.0), None, None));
        assert_eq!(found.queue_depth_mean, Some(3.5));
    }
}
