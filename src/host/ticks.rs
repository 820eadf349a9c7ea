//! The cheapest clock there is, for loops in which reading the time is a sizeable part of an operation.
//!
//! If the kernel itself keeps time by the CPU's time stamp counter (`current_clocksource` is `tsc`: constant, and the
//! same on all CPUs), that counter is read directly, in about a third of the time of clock_gettime(2); else the
//! monotonic clock. Ticks become nanoseconds by comparing both clocks over the life of the [`Ticker`].

use super::Host;
use super::time::{Instant, now};
use std::time::Duration;

/// How long both clocks run before a ticker is used: reading either takes tens of nanoseconds, so the rate is known to
/// a few hundredths of a per mille.
const FIRST_COMPARISON: Duration = Duration::from_millis(2);

#[derive(Debug, Clone)]
pub struct Ticker {
    by_counter: bool,
    /// The same moment on both clocks.
    origin: (Instant, u64),
}

impl Ticker {
    /// Picks the cheapest clock of this machine.
    pub fn of(host: &Host) -> Ticker {
        let source = host.read_optional("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        let by_counter = cfg!(target_arch = "x86_64") && source.as_deref() == Some("tsc");
        let begun = now();
        let ticker = Ticker { by_counter, origin: (begun, if by_counter { counter() } else { 0 }) };
        while by_counter && begun.elapsed() < FIRST_COMPARISON {
            std::hint::spin_loop();
        }
        ticker
    }

    #[inline]
    pub fn now(&self) -> u64 {
        if self.by_counter { counter() } else { self.nanos_since_origin() }
    }

    fn nanos_since_origin(&self) -> u64 {
        u64::try_from(self.origin.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Nanoseconds per tick, measured since the ticker was created.
    pub(crate) fn nanos_per_tick(&self) -> f64 {
        if !self.by_counter {
            return 1.0;
        }
        let (ticks, nanos) = (counter().saturating_sub(self.origin.1), self.nanos_since_origin());
        nanos as f64 / (ticks as f64).max(1.0)
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "reads the time stamp counter")]
fn counter() -> u64 {
    // SAFETY: every x86-64 has the instruction, and Linux allows it in user space unless asked not to (prctl
    // PR_SET_TSC).
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(clocksource: &str) -> Ticker {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/devices/system/clocksource/clocksource0");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("current_clocksource"), clocksource).unwrap();
        Ticker::of(&Host::rooted(root.path()))
    }

    #[test]
    fn both_clocks_agree_with_the_monotonic_one() {
        for clocksource in ["tsc\n", "kvm-clock\n"] {
            let ticker = on(clocksource);
            let (begun, first) = (now(), ticker.now());
            super::super::time::sleep(Duration::from_millis(20));
            let (took, ticks) = (begun.elapsed().as_nanos() as f64, ticker.now() - first);
            let measured = ticks as f64 * ticker.nanos_per_tick();
            // The thread may have been preempted between reading the two clocks.
            assert!((measured / took - 1.0).abs() < 0.2, "{clocksource}: {measured} {took}");
        }
    }

    #[test]
    fn the_counter_is_read_only_where_the_kernel_trusts_it() {
        assert!(!on("hpet\n").by_counter);
        assert_eq!(on("tsc\n").by_counter, cfg!(target_arch = "x86_64"));
    }
}
