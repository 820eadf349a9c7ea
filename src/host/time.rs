//! The clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment on the monotonic clock.
pub type Instant = std::time::Instant;

/// Wall clock, microseconds since 1970-01-01 UTC.
#[must_use]
pub fn wall_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros)
}

/// The monotonic clock now.
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}

/// Microseconds of a duration, saturating after half a million years.
#[must_use]
pub(crate) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// A wall-clock moment as RFC 3339 in UTC, to the second.
#[must_use]
pub(crate) fn rfc3339(wall_us: u64) -> String {
    let seconds = i64::try_from(wall_us / 1_000_000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| "unknown".to_owned(), |t| t.to_string())
}

/// The same with its fraction of a second, to the microsecond.
#[must_use]
pub(crate) fn rfc3339_us(wall_us: u64) -> String {
    let micros = i64::try_from(wall_us).unwrap_or(i64::MAX);
    jiff::Timestamp::from_microsecond(micros).map_or_else(|_| "unknown".to_owned(), |t| t.to_string())
}

pub fn sleep(span: Duration) {
    std::thread::sleep(span);
}

/// CPU time that the calling thread has used, microseconds (CLOCK_THREAD_CPUTIME_ID).
#[must_use]
pub fn thread_cpu_us() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0) / 1_000
}
