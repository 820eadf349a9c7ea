//! When something was measured, as far as its output tells: in seconds since 1970, of UTC or of a clock whose zone
//! nobody knows. The two are never compared with each other.

use crate::record::imported::{ImportedLog, ImportedOutput};
use jiff::civil::DateTime;
use jiff::fmt::strtime;

/// First and last moment of each clock, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Moment {
    utc: Option<(i64, i64)>,
    local: Option<(i64, i64)>,
}

/// When outputs and a log were made.
pub(super) fn of(outputs: &[ImportedOutput], log: Option<&ImportedLog>) -> Moment {
    let mut moment = Moment::default();
    let span = log.and_then(|log| log.span_us);
    for us in span.iter().flat_map(|(first, last)| [*first, *last]) {
        moment.see(Stamp::Utc(i64::try_from(us / 1_000_000).unwrap_or(i64::MAX)));
    }
    for output in outputs {
        for (name, value) in &output.facts {
            if name == "timestamp" || name.starts_with("time of report") {
                stamp(value).into_iter().for_each(|stamp| moment.see(stamp));
            }
        }
        for row in &output.rows {
            let labels = row.labels.iter().filter(|(name, _)| name == "time");
            labels.filter_map(|(_, text)| stamp(text)).for_each(|stamp| moment.see(stamp));
            let seconds = row.figures.iter().filter(|figure| figure.name == "at_seconds");
            seconds.filter_map(|figure| stamp(&figure.text)).for_each(|stamp| moment.see(stamp));
        }
    }
    moment
}

impl Moment {
    fn see(&mut self, stamp: Stamp) {
        let (span, at) = match stamp {
            Stamp::Utc(at) => (&mut self.utc, at),
            Stamp::Local(at) => (&mut self.local, at),
        };
        *span = Some(span.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
    }

    /// Both.
    pub(super) fn with(self, other: Moment) -> Moment {
        let span = |one: Option<(i64, i64)>, other: Option<(i64, i64)>| {
            one.into_iter().chain(other).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
        };
        Moment { utc: span(self.utc, other.utc), local: span(self.local, other.local) }
    }

    /// Its beginning in words, UTC where that is known.
    pub(super) fn beginning(self) -> Option<String> {
        let date = |seconds| jiff::Timestamp::from_second(seconds).ok();
        match (self.utc, self.local) {
            (Some((first, _)), _) => date(first).map(|date| date.to_string()),
            (None, Some((first, _))) => date(first).map(|date| {
                let local = date.to_string();
                format!("{}, of an unknown time zone", local.trim_end_matches('Z'))
            }),
            (None, None) => None,
        }
    }

    /// Whether the two overlap; `None` where no clock tells.
    pub(super) fn overlaps(self, other: Moment) -> Option<bool> {
        let (one, other) = self.utc.zip(other.utc).or(self.local.zip(other.local))?;
        Some(one.0 <= other.1 && other.0 <= one.1)
    }

    /// Whether the two went on for a while at the same time. A single stamp tells no end.
    pub(super) fn lasts_with(self, other: Moment) -> bool {
        let pair = self.utc.zip(other.utc).or(self.local.zip(other.local));
        pair.is_some_and(|(one, other)| one.0 < other.1 && other.0 < one.1)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stamp {
    Utc(i64),
    Local(i64),
}

/// A time stamp with its date; a time of day alone tells nothing.
fn stamp(text: &str) -> Option<Stamp> {
    const FROM_2001: i64 = 1_000_000_000;
    const OFFSET: [&str; 2] = ["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S%:z"];
    const LOCAL: [&str; 7] = [
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M:%S",
        "%m/%d/%y %H:%M:%S",
        "%m/%d/%Y %H:%M:%S",
        "%m/%d/%Y %I:%M:%S %p",
        "%a %b %d %H:%M:%S %Y",
        "%a %b %d %I:%M:%S %p %Y",
    ];
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds: i64 = text.parse().ok()?;
        // Three digits more are milliseconds.
        let seconds = if seconds > FROM_2001 * 1000 { seconds / 1000 } else { seconds };
        return (FROM_2001..FROM_2001 * 10).contains(&seconds).then_some(Stamp::Utc(seconds));
    }
    let offset = OFFSET.iter().find_map(|form| strtime::parse(form, text).ok()?.to_timestamp().ok());
    if let Some(at) = offset {
        return Some(Stamp::Utc(at.as_second()));
    }
    // `Thu Jun 26 23:52:00 UTC 2014`, as date(1) prints.
    let words: Vec<&str> = text.split_whitespace().filter(|word| !is_zone(word)).collect();
    let bare = words.join(" ");
    let at = LOCAL.iter().find_map(|form| DateTime::strptime(form, &bare).ok())?;
    let seconds = at.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
    Some(if text.contains("UTC") || text.contains("GMT") { Stamp::Utc(seconds) } else { Stamp::Local(seconds) })
}

fn is_zone(word: &str) -> bool {
    (3..=5).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_every_tool_are_read_and_a_time_of_day_tells_nothing() {
        for (text, wanted) in [
            ("1403826720", Stamp::Utc(1_403_826_720)),
            ("1403826720123", Stamp::Utc(1_403_826_720)),
            ("2014-06-26T23:52:00+0000", Stamp::Utc(1_403_826_720)),
            ("2014-06-27T01:52:00+02:00", Stamp::Utc(1_403_826_720)),
            ("Thu Jun 26 23:52:00 UTC 2014", Stamp::Utc(1_403_826_720)),
            ("Thu Jun 26 23:52:00 CEST 2014", Stamp::Local(1_403_826_720)),
            ("2014-06-26 23:52:00 UTC", Stamp::Utc(1_403_826_720)),
            ("2014-06-26 23:52:00", Stamp::Local(1_403_826_720)),
            ("06/26/14 23:52:00", Stamp::Local(1_403_826_720)),
            ("06/26/2014 11:52:00 PM", Stamp::Local(1_403_826_720)),
        ] {
            assert_eq!(stamp(text), Some(wanted), "{text}");
        }
        for text in ["23:52:00", "12", "", "Time: 09:09:58 AM", "99999999999999999999"] {
            assert_eq!(stamp(text), None, "{text}");
        }
    }

    #[test]
    fn clocks_of_unknown_zones_are_compared_among_themselves_only() {
        let of = |stamps: &[Stamp]| {
            let mut moment = Moment::default();
            stamps.iter().for_each(|stamp| moment.see(*stamp));
            moment
        };
        let one = of(&[Stamp::Utc(5), Stamp::Utc(9)]);
        assert_eq!(one.beginning().as_deref(), Some("1970-01-01T00:00:05Z"));
        let local = of(&[Stamp::Local(7)]).beginning();
        assert_eq!(local.as_deref(), Some("1970-01-01T00:00:07, of an unknown time zone"));
        assert_eq!(one.overlaps(of(&[Stamp::Utc(9)])), Some(true));
        assert_eq!(one.overlaps(of(&[Stamp::Utc(10)])), Some(false));
        assert_eq!(one.overlaps(of(&[Stamp::Local(7)])), None);
        assert_eq!(one.with(of(&[Stamp::Local(7)])).overlaps(of(&[Stamp::Local(6), Stamp::Local(8)])), Some(true));
    }
}
