//! What the sample's trials did over time: telemetry, latencies, waits.

use crate::report::sample::{Noise, SECONDS, noisy, series};
use pgstrata::analyse::findings::{Heatmap, Series, WaitOverTime, WaitsOverTime};

pub fn telemetry(noise: &mut Noise, tps: f64) -> Vec<Series> {
    let mut one = |title: &str, unit: &str, group: &str, mean: f64| series(title, unit, group, noisy(noise, mean, 0.2));
    let mut all = vec![
        one("WAL", "MiB/s", "wal", tps * 3.6e-3),
        one("p50", "ms", "latency", 4_000.0 / tps),
        one("p99", "ms", "latency", 9_000.0 / tps),
        one("p99.9", "ms", "latency", 20_000.0 / tps),
        one("WAL syncs", "1/s", "wal_syncs", tps * 0.97),
        one("loop: write latency", "ms", "device_write_latency", 0.4),
        one("vda: write latency", "ms", "device_write_latency", 0.2),
        one("loop: flush latency", "ms", "device_flush_latency", 1.4),
        one("loop: queue depth", "requests", "device_queue", 1.3),
        one("loop: flushes", "1/s", "device_flushes", tps * 0.98),
        one("loop: busy", "%", "device_busy", 87.0),
        one("user", "%", "cpu", 21.0),
        one("system", "%", "cpu", 17.0),
        one("waiting for I/O", "%", "cpu", 34.0),
        one("some task waits for I/O", "%", "pressure", 41.0),
        one("all tasks wait for I/O", "%", "pressure", 22.0),
        one("dirty", "MiB", "memory_dirty", 180.0),
        one("under writeback", "MiB", "memory_dirty", 3.2),
    ];
    for gap in 40..43 {
        all[0].min[gap] = None;
    }
    all
}

/// Most operations around 1 ms, some slow ones from 10 ms on; none in second 31.
pub fn heatmap(number: u32) -> Heatmap {
    let mut noise = Noise::new(u64::from(number) + 99);
    let mut column = |second: usize| {
        if second == 30 {
            return (0, vec![]);
        }
        let count = |row: u32| {
            let middle = 10_000.0 * (-(f64::from(row) - 4.0).powi(2) / 6.0).exp();
            (middle * (0.5 + noise.next())) as u64 + u64::from(row % 7 == 6)
        };
        (26, (0..16).map(count).collect())
    };
    Heatmap { bucket_s: 1, rows_per_decade: 10, columns: (0..SECONDS).map(&mut column).collect() }
}

pub fn waits(number: u32) -> WaitsOverTime {
    let mut noise = Noise::new(u64::from(number) + 7);
    let mut one = |class: &str, event: &str, mean: f64| WaitOverTime {
        class: class.to_owned(),
        event: event.to_owned(),
        backends: noisy(&mut noise, mean, 0.5),
    };
    let waits = vec![one("IO", "WALSync", 3.0), one("CPU", "CPU", 1.2), one("LWLock", "WALWrite", 0.8)];
    WaitsOverTime { bucket_s: 1, waits, others: noisy(&mut noise, 0.2, 0.5) }
}
