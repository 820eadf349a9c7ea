//! The timed loop: between two operations it only reads the clock and stores the result.
//!
//! The end times of operations are kept on a tape; latencies and histograms are computed when the slice is over.

use crate::host::signals::Interrupt;
use crate::host::ticks::Ticker;
use crate::host::time::{Instant, now};
use std::io;
use std::time::Duration;

/// Most operations per slice: a quarter of a second at a million a second.
const LENGTH: usize = 1 << 18;

#[derive(Debug)]
pub struct FailedCall {
    pub call: &'static str,
    pub error: io::Error,
}

/// Clones an error by its number, or by its message if it has none.
impl Clone for FailedCall {
    fn clone(&self) -> FailedCall {
        let error = match self.error.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => io::Error::other(self.error.to_string()),
        };
        FailedCall { call: self.call, error }
    }
}

impl FailedCall {
    /// For `map_err`.
    pub fn of<E: Into<io::Error>>(call: &'static str) -> impl FnOnce(E) -> FailedCall {
        move |error| FailedCall { call, error: error.into() }
    }
}

/// End times of the operations of one slice.
pub struct Tape {
    ticker: Ticker,
    begun: Instant,
    begun_ticks: u64,
    ends: Vec<u64>,
    nanos_per_tick: f64,
}

impl Tape {
    pub fn new(ticker: Ticker) -> Tape {
        // Touched once, so that no operation incurs a page fault.
        let mut ends = vec![0; LENGTH];
        ends.clear();
        Tape { ticker, begun: now(), begun_ticks: 0, ends, nanos_per_tick: 1.0 }
    }

    /// Repeats `operation` until `span` is over, at most `most` times and at least `least` times (once, if that is 0).
    ///
    /// # Errors
    /// The failed operation's; those before it are on the tape.
    #[inline]
    pub fn run(
        &mut self,
        span: Duration,
        (least, most): (usize, usize),
        interrupt: &Interrupt,
        mut operation: impl FnMut() -> Result<(), FailedCall>,
    ) -> Result<(), FailedCall> {
        self.nanos_per_tick = self.ticker.nanos_per_tick();
        self.ends.clear();
        let most = most.clamp(1, LENGTH);
        let span_ticks = (span.as_nanos() as f64 / self.nanos_per_tick) as u64;
        self.begun = now();
        self.begun_ticks = self.ticker.now();
        let until = self.begun_ticks.saturating_add(span_ticks);
        loop {
            operation()?;
            let ended = self.ticker.now();
            self.ends.push(ended);
            if (ended >= until && self.ends.len() >= least) || self.ends.len() >= most || interrupt.is_raised() {
                return Ok(());
            }
        }
    }

    /// Start of the first operation.
    pub fn begun(&self) -> Instant {
        self.begun
    }

    fn span(&self, from: u64, to: u64) -> Duration {
        // A counter that is the same on all CPUs never goes back; if it did, the operation would count as taking no
        // time.
        Duration::from_nanos((to.saturating_sub(from) as f64 * self.nanos_per_tick) as u64)
    }

    /// From there to the end of the last completed one.
    pub fn elapsed(&self) -> Duration {
        self.ends.last().map_or(Duration::ZERO, |last| self.span(self.begun_ticks, *last))
    }

    /// End and duration of each completed operation.
    pub fn operations(&self) -> impl Iterator<Item = (Instant, Duration)> {
        let ends = std::iter::once(self.begun_ticks).chain(self.ends.iter().copied()).zip(&self.ends);
        ends.map(|(began, ended)| (self.begun + self.span(self.begun_ticks, *ended), self.span(began, *ended)))
    }
}

pub(super) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    #[test]
    fn every_successful_operation_is_taped_and_failed_ones_are_not() {
        let mut tape = Tape::new(Ticker::of(&Host::this()));
        let mut left = 3;
        let outcome = tape.run(Duration::from_secs(60), (1, 100), &Interrupt::never(), || {
            if left == 0 {
                return Err(FailedCall { call: "fsync", error: io::Error::from_raw_os_error(5) });
            }
            left -= 1;
            Ok(())
        });
        assert_eq!(outcome.unwrap_err().call, "fsync");
        assert_eq!(tape.operations().count(), 3);
        let sum: Duration = tape.operations().map(|(_, took)| took).sum();
        assert!(tape.elapsed().abs_diff(sum) < Duration::from_nanos(3), "{sum:?} {:?}", tape.elapsed());
    }

    #[test]
    fn a_slice_has_at_least_one_operation_despite_an_interrupt() {
        let mut tape = Tape::new(Ticker::of(&Host::this()));
        tape.run(Duration::ZERO, (1, 100), &Interrupt::never(), || Ok(())).unwrap();
        assert_eq!(tape.operations().count(), 1);
        tape.run(Duration::from_secs(60), (1, 7), &Interrupt::never(), || Ok(())).unwrap();
        assert_eq!(tape.operations().count(), 7);
        let raised = Interrupt::never();
        raised.raise();
        tape.run(Duration::from_secs(60), (1, 100), &raised, || Ok(())).unwrap();
        assert_eq!(tape.operations().count(), 1);
    }
}
