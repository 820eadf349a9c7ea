//! Several consecutive pgbench runs as one measurement: their seconds and latencies on one time axis.

use super::seconds::TRANSACTIONS;
use crate::record::latency::LatencyInterval;
use crate::workload::{ClientSecond, Listener, LoadEvent};
use hdrhistogram::Histogram;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const SECOND_US: u64 = 1_000_000;

/// Shifts the events of one pgbench onto the time axis of the whole trial.
pub(super) struct Shifted<'a> {
    listener: &'a Listener<'a>,
    axis: &'a TimeAxis,
    tag: &'a str,
    /// When this one began, relative to the origin.
    pub start_us: AtomicU64,
}

/// The time axis of several pgbench runs.
#[derive(Default)]
pub(super) struct TimeAxis {
    /// Wall clock when the first of them began.
    pub origin: OnceLock<u64>,
    /// Last second reported by any of them.
    pub last: AtomicU64,
}

impl<'a> Shifted<'a> {
    /// `tag` names its latencies.
    pub fn new(listener: &'a Listener<'a>, axis: &'a TimeAxis, tag: &'a str) -> Shifted<'a> {
        Shifted { listener, axis, tag, start_us: AtomicU64::new(0) }
    }

    /// Forwards an event of this pgbench.
    pub fn report(&self, event: LoadEvent) {
        match event {
            LoadEvent::Began(wall_us) => self.began(wall_us),
            LoadEvent::Second(second) => self.second(second),
            LoadEvent::Latencies(interval) if interval.measure == TRANSACTIONS => {
                let start_us = self.start_us.load(Ordering::SeqCst) + interval.start_us;
                let interval = LatencyInterval { measure: self.tag.to_owned(), start_us, ..interval };
                (self.listener)(LoadEvent::Latencies(interval));
            }
            LoadEvent::Latencies(_) => {}
        }
    }

    fn began(&self, wall_us: u64) {
        if self.axis.origin.set(wall_us).is_ok() {
            (self.listener)(LoadEvent::Began(wall_us));
        }
        let start_us = wall_us.saturating_sub(*self.axis.origin.get().unwrap_or(&wall_us));
        self.start_us.store(start_us, Ordering::SeqCst);
    }

    fn second(&self, second: ClientSecond) {
        // Round to whole seconds of the trial: this pgbench's own seconds start there.
        let before = (self.start_us.load(Ordering::SeqCst) + SECOND_US / 2) / SECOND_US;
        let now = before + second.second;
        // No load between two of them is not a gap: report seconds without operations.
        for pause in self.axis.last.swap(now, Ordering::SeqCst) + 1..now {
            let pause = ClientSecond::of(pause, Histogram::new_from(&second.latencies));
            (self.listener)(LoadEvent::Second(pause));
        }
        (self.listener)(LoadEvent::Second(ClientSecond { second: now, ..second }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_step_is_placed_on_the_trial_time_axis() {
        use std::sync::Mutex;
        let (reported, axis) = (Mutex::new(Vec::new()), TimeAxis::default());
        let listener = |it| {
            reported.lock().unwrap().push(match it {
                LoadEvent::Began(wall_us) => wall_us,
                LoadEvent::Second(second) => second.second,
                LoadEvent::Latencies(interval) => {
                    assert_eq!(interval.measure, "step-02");
                    interval.start_us
                }
            });
        };
        let shifted = |tag| Shifted::new(&listener, &axis, tag);
        let latencies = crate::workload::empty_histogram().unwrap();
        let second = |second| LoadEvent::Second(ClientSecond { done: 1, ..ClientSecond::empty(second).unwrap() });
        let first = shifted("step-01");
        first.report(LoadEvent::Began(7_000_000));
        (1..=3).for_each(|number| first.report(second(number)));
        let next = shifted("step-02");
        // A pause of 1.8 seconds yields seconds without operations, not gaps.
        next.report(LoadEvent::Began(11_800_000));
        next.report(second(1));
        for measure in [TRANSACTIONS, "select-only"] {
            let measure = measure.to_owned();
            let latencies = latencies.clone();
            next.report(LoadEvent::Latencies(LatencyInterval { measure, start_us: 5, length_us: 9, latencies }));
        }
        assert_eq!(*reported.lock().unwrap(), [7_000_000, 1, 2, 3, 4, 5, 6, 4_800_005]);
    }
}
