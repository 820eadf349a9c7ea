//! Several pgbench one after the other as one measurement: their seconds and latencies on one time axis.

use super::seconds::TRANSACTIONS;
use crate::record::latency::LatencyInterval;
use crate::workload::{ClientSecond, Listener};
use hdrhistogram::Histogram;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const SECOND_US: u64 = 1_000_000;

/// Puts what one pgbench of several tells onto the time axis of the whole trial.
pub(super) struct Shifted<'a> {
    listener: &'a dyn Listener,
    /// When the first of them began, wall clock.
    origin: &'a OnceLock<u64>,
    tag: &'a str,
    /// When this one began, after that.
    pub start_us: AtomicU64,
    /// The last second that was told, of all of them.
    last: &'a AtomicU64,
}

impl<'a> Shifted<'a> {
    /// `tag` is what its latencies are called.
    pub fn new(
        listener: &'a dyn Listener,
        origin: &'a OnceLock<u64>,
        tag: &'a str,
        last: &'a AtomicU64,
    ) -> Shifted<'a> {
        Shifted { listener, origin, tag, start_us: AtomicU64::new(0), last }
    }
}

impl Listener for Shifted<'_> {
    fn began(&self, wall_us: u64) {
        if self.origin.set(wall_us).is_ok() {
            self.listener.began(wall_us);
        }
        let start_us = wall_us.saturating_sub(*self.origin.get().unwrap_or(&wall_us));
        self.start_us.store(start_us, Ordering::SeqCst);
    }

    fn second(&self, second: ClientSecond) {
        // The nearest second of the trial: its own seconds begin with it.
        let before = (self.start_us.load(Ordering::SeqCst) + SECOND_US / 2) / SECOND_US;
        let now = before + second.second;
        // Between two of them nothing is asked for: no hole, a second without operations.
        for pause in self.last.swap(now, Ordering::SeqCst) + 1..now {
            let latencies = Histogram::new_from(&second.latencies);
            let (done, failed, skipped, late, idle_us, log_sample) = (0, 0, 0, 0, None, second.log_sample);
            let pause = ClientSecond { second: pause, done, failed, skipped, late, idle_us, log_sample, latencies };
            self.listener.second(pause);
        }
        self.listener.second(ClientSecond { second: now, ..second });
    }

    fn latencies(&self, interval: LatencyInterval) {
        if interval.measure == TRANSACTIONS {
            let start_us = self.start_us.load(Ordering::SeqCst) + interval.start_us;
            self.listener.latencies(LatencyInterval { measure: self.tag.to_owned(), start_us, ..interval });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_told_on_the_time_axis_of_its_trial() {
        use std::sync::Mutex;
        #[derive(Default)]
        struct Told(Mutex<Vec<u64>>);
        impl Listener for Told {
            fn began(&self, wall_us: u64) {
                self.0.lock().unwrap().push(wall_us);
            }
            fn second(&self, second: ClientSecond) {
                self.0.lock().unwrap().push(second.second);
            }
            fn latencies(&self, interval: LatencyInterval) {
                assert_eq!(interval.measure, "step-02");
                self.0.lock().unwrap().push(interval.start_us);
            }
        }
        let (told, origin) = (Told::default(), OnceLock::new());
        let last = AtomicU64::new(0);
        let shifted = |tag| Shifted::new(&told, &origin, tag, &last);
        let latencies = crate::workload::empty_histogram().unwrap();
        let second = |second| ClientSecond {
            second,
            done: 1,
            failed: 0,
            skipped: 0,
            late: 0,
            idle_us: None,
            log_sample: 1.0,
            latencies: latencies.clone(),
        };
        let first = shifted("step-01");
        first.began(7_000_000);
        (1..=3).for_each(|number| first.second(second(number)));
        let next = shifted("step-02");
        // A pause of 1.8 seconds has seconds without operations, no holes.
        next.began(11_800_000);
        next.second(second(1));
        for measure in [TRANSACTIONS, "select-only"] {
            let measure = measure.to_owned();
            next.latencies(LatencyInterval { measure, start_us: 5, length_us: 9, latencies: latencies.clone() });
        }
        assert_eq!(*told.0.lock().unwrap(), [7_000_000, 1, 2, 3, 4, 5, 6, 4_800_005]);
    }
}
