//! The clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use super::linux::thread_cpu_us;

/// A moment on the monotonic clock.
pub type Instant = std::time::Instant;

/// Wall clock, microseconds since 1970-01-01 UTC.
pub fn wall_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros)
}

/// The monotonic clock now.
pub fn now() -> Instant {
    Instant::now()
}

/// Microseconds of a duration, saturating after half a million years.
pub(crate) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// Formats a wall-clock time as RFC 3339 in UTC, to the second.
pub(crate) fn rfc3339(wall_us: u64) -> String {
    let seconds = i64::try_from(wall_us / 1_000_000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| "unknown".to_owned(), |t| t.to_string())
}

/// Same, to the microsecond.
pub(crate) fn rfc3339_us(wall_us: u64) -> String {
    let micros = i64::try_from(wall_us).unwrap_or(i64::MAX);
    jiff::Timestamp::from_microsecond(micros).map_or_else(|_| "unknown".to_owned(), |t| t.to_string())
}

/// Formats a time as local time of day: `14:32`, with the weekday if it is not today.
pub(crate) fn time_of_day(at_us: u64, now_us: u64) -> String {
    in_zone(at_us, now_us, &jiff::tz::TimeZone::system())
}

fn in_zone(at_us: u64, now_us: u64, zone: &jiff::tz::TimeZone) -> String {
    let [at, now] = [at_us, now_us].map(|us| {
        let seconds = i64::try_from(us / 1_000_000).unwrap_or(i64::MAX);
        jiff::Timestamp::from_second(seconds).map(|moment| moment.to_zoned(zone.clone()))
    });
    let (Ok(at), Ok(now)) = (at, now) else { return "unknown".to_owned() };
    let form = if at.date() == now.date() { "%H:%M" } else { "%a %H:%M" };
    at.strftime(form).to_string()
}

pub fn sleep(span: Duration) {
    std::thread::sleep(span);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_local_and_names_another_day() {
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(2));
        let at = |text: &str| u64::try_from(text.parse::<jiff::Timestamp>().unwrap().as_microsecond()).unwrap();
        let now = at("2026-11-22T08:00:00Z");
        assert_eq!(in_zone(at("2026-11-22T12:32:40Z"), now, &zone), "14:32");
        assert_eq!(in_zone(at("2026-11-22T22:05:00Z"), now, &zone), "Mon 00:05");
    }
}
