//! Large pieces of work that are timed as a whole: a scan, a file.

use super::{ClientSecond, Listener, LoadEvent};
use crate::error::Result;
use crate::host::time::{Instant, micros, now};
use crate::record::counts::{Measure, MeasureSlice};

const MIB: u64 = 1 << 20;

/// Work that is timed several times.
pub(super) struct TimedWork {
    name: &'static str,
    pub slices: Vec<MeasureSlice>,
}

impl TimedWork {
    pub fn new(name: &'static str) -> TimedWork {
        TimedWork { name, slices: Vec::new() }
    }

    pub fn add(&mut self, bytes: u64, elapsed_us: u64) {
        self.slices.push(MeasureSlice { operations: bytes / MIB, elapsed_ns: elapsed_us * 1000 });
    }

    pub fn measure(self) -> Measure {
        let elapsed_us = self.slices.iter().map(|slice| slice.elapsed_ns).sum::<u64>() / 1000;
        Measure {
            name: self.name.to_owned(),
            done: Some(self.slices.iter().map(|slice| slice.operations).sum()),
            elapsed_us,
            latency_us_sum: elapsed_us,
            slices: self.slices,
            ..Measure::default()
        }
    }
}

/// Reports pieces longer than a second as seconds: the work of a piece is spread evenly over its time.
pub(super) struct PieceSeconds<'a> {
    listener: &'a Listener<'a>,
    /// When the first operation began.
    pub begun: Instant,
    /// MiB by second.
    seconds: Vec<f64>,
    reported: usize,
}

impl<'a> PieceSeconds<'a> {
    pub fn new(listener: &'a Listener<'a>) -> PieceSeconds<'a> {
        PieceSeconds { listener, begun: now(), seconds: Vec::new(), reported: 0 }
    }

    /// Does a piece of work, and adds it here and to all of its kind.
    pub fn time(&mut self, bytes: u64, all: &mut TimedWork, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let began_us = micros(self.begun.elapsed());
        work()?;
        let ended_us = micros(self.begun.elapsed());
        all.add(bytes, ended_us - began_us);
        self.add(bytes, began_us, ended_us)
    }

    /// Adds a piece with its start and end, microseconds after the first operation began; reports the complete seconds.
    fn add(&mut self, bytes: u64, began_us: u64, ended_us: u64) -> Result<()> {
        const S: u64 = 1_000_000;
        let per_us = bytes as f64 / MIB as f64 / ended_us.saturating_sub(began_us).max(1) as f64;
        self.seconds.resize((ended_us / S + 1) as usize, 0.0);
        for second in began_us / S..=ended_us / S {
            let part = ended_us.min((second + 1) * S).saturating_sub(began_us.max(second * S));
            self.seconds[second as usize] += per_us * part as f64;
        }
        while (self.reported as u64 + 1) * S <= ended_us {
            let done = self.seconds[self.reported].round() as u64;
            self.reported += 1;
            let second = ClientSecond { done, ..ClientSecond::empty(self.reported as u64)? };
            (self.listener)(LoadEvent::Second(second));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_piece_of_work_is_spread_over_its_seconds() {
        let heard = Mutex::new(Vec::new());
        let listener = |event| {
            if let LoadEvent::Second(second) = event {
                heard.lock().unwrap().push((second.second, second.done));
            }
        };
        let mut spread = PieceSeconds::new(&listener);
        spread.add(100 * MIB, 0, 2_500_000).unwrap();
        assert_eq!(*heard.lock().unwrap(), [(1, 40), (2, 40)]);
        spread.add(60 * MIB, 2_600_000, 3_200_000).unwrap();
        assert_eq!(*heard.lock().unwrap(), [(1, 40), (2, 40), (3, 60)]);
    }
}
