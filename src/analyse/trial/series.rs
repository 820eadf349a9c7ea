//! Chart series of a trial: buckets of seconds with their minimum and maximum, so that a stall of one second remains
//! visible in a series of days.

use crate::analyse::findings::Series;
use crate::analyse::trial::input::Seconds;
use crate::record::columns;
use crate::store::seconds::CountColumn;

/// Numbers that all series of a run may contain in total: about six characters each, so that the document stays below
/// about 5 MB however long the run.
const NUMBERS_IN_ALL: usize = 700_000;
/// Most buckets of a client's series: about the pixels of a wide screen.
const MOST_CLIENT_BUCKETS: usize = 1500;
/// Most buckets of a telemetry series.
const MOST_TELEMETRY_BUCKETS: usize = 400;
/// Fewest buckets of any series, however many trials there are.
const FEWEST_BUCKETS: usize = 24;
/// Expected number of telemetry series per trial, including waits; used to share out the space.
const TELEMETRY_SERIES: usize = 45;
/// Most columns of a heatmap, each of some ten numbers.
const MOST_HEATMAP_COLUMNS: usize = 240;
/// Significant digits kept; charts cannot show more.
const DIGITS: i32 = 4;

/// Most buckets of one trial's series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buckets {
    /// For throughput and latency.
    pub client: usize,
    /// For each telemetry series.
    pub telemetry: usize,
    /// Columns of the latency heatmap.
    pub heatmap: usize,
}

impl Buckets {
    /// Shares out the space for this many trials: a quarter to the client's two series, an eighth to the heatmap, the
    /// rest to telemetry; each bucket has two numbers.
    pub fn for_trials(trials: usize) -> Buckets {
        let room = NUMBERS_IN_ALL / trials.max(1);
        Buckets {
            client: (room / 4 / 4).clamp(FEWEST_BUCKETS, MOST_CLIENT_BUCKETS),
            telemetry: (room * 5 / 8 / (2 * TELEMETRY_SERIES)).clamp(FEWEST_BUCKETS, MOST_TELEMETRY_BUCKETS),
            heatmap: (room / 8 / 15).clamp(FEWEST_BUCKETS, MOST_HEATMAP_COLUMNS),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Caption<'a> {
    pub title: &'a str,
    pub unit: &'a str,
    /// Chart group.
    pub group: &'a str,
}

/// Sorts the values of seconds 1 to `seconds` into at most `most` buckets; `None` if no second has a value. A bucket
/// ignores seconds without a value; a bucket without any value is a gap.
pub fn bucketed(
    caption: Caption<'_>,
    seconds: usize,
    most: usize,
    mut value: impl FnMut(usize) -> Option<f64>,
) -> Option<Series> {
    let bucket = seconds.div_ceil(most.max(1)).max(1);
    let (mut min, mut max) = (Vec::with_capacity(seconds / bucket + 1), Vec::new());
    let mut any = false;
    let mut row = 1;
    while row <= seconds {
        let (mut least, mut largest) = (f64::INFINITY, f64::NEG_INFINITY);
        let end = (row + bucket).min(seconds + 1);
        while row < end {
            if let Some(now) = value(row) {
                // Plain comparisons because the values are never NaN and `f64::min` pays for checking.
                least = if now < least { now } else { least };
                largest = if now > largest { now } else { largest };
            }
            row += 1;
        }
        any |= least.is_finite();
        min.push(least.is_finite().then(|| short(least)));
        if bucket > 1 {
            max.push(largest.is_finite().then(|| short(largest)));
        }
    }
    let [title, unit, group] = [caption.title, caption.unit, caption.group].map(str::to_owned);
    let bucket_s = u32::try_from(bucket).unwrap_or(u32::MAX);
    any.then_some(Series { title, unit, group, bucket_s, min, max })
}

/// Time covered by each row, from the previous row to it by the wall clock if plausible; stored as its inverse, per
/// second, because every rate multiplies by it.
#[derive(Debug, Clone)]
pub struct Ticks(Vec<f32>);

/// Plausible time between two rows; outside this range the clock was stepped, and one second is assumed.
const BELIEVED_TICK_S: std::ops::RangeInclusive<f64> = 0.2..=1.8;

impl Ticks {
    /// From the clock's column, or whole seconds without one.
    pub fn of(seconds: &Seconds) -> Ticks {
        let clock = seconds.counts(&columns::TIME_US);
        let tick = |row: usize| {
            let clock = clock?;
            let us = clock.at(row)?.checked_sub(clock.at(row.checked_sub(1)?)?)?;
            Some(us as f64 / 1e6).filter(|span| BELIEVED_TICK_S.contains(span))
        };
        Ticks((0..seconds.rows()).map(|row| tick(row).map_or(1.0, f64::recip) as f32).collect())
    }

    #[inline]
    fn per_second(&self, row: usize) -> f64 {
        f64::from(self.0.get(row).copied().unwrap_or(1.0))
    }
}

/// Operations per second in each row, `None` for a gap; rows of turns may be shorter than a second.
pub fn per_second(seconds: &Seconds) -> Vec<Option<u64>> {
    let Some(done) = seconds.counts(&columns::CLIENT_DONE) else { return Vec::new() };
    let ticks = Ticks::of(seconds);
    (1..done.rows()).map(|row| Some((done.at(row)? as f64 * ticks.per_second(row)).round() as u64)).collect()
}

/// Growth of a counter per second, for rows from 1 in order; `None` next to a gap and if it fell.
pub fn rates<'a>(column: &'a CountColumn, ticks: &'a Ticks) -> impl FnMut(usize) -> Option<f64> + use<'a> {
    let mut before = column.at(0);
    move |row| {
        let now = column.at(row);
        let earlier = std::mem::replace(&mut before, now);
        let grown = now?.checked_sub(earlier?)?;
        Some(grown as f64 * ticks.per_second(row))
    }
}

/// Growth of a counter since the previous row.
#[inline]
pub fn step(column: &CountColumn, row: usize) -> Option<f64> {
    let before = column.at(row.checked_sub(1)?)?;
    column.at(row)?.checked_sub(before).map(|grown| grown as f64)
}

/// Rounds to [`DIGITS`] significant digits, so that reports of days stay small; a non-zero value never becomes 0.
pub fn short(value: f64) -> f32 {
    if value == 0.0 {
        return 0.0;
    }
    let digits = DIGITS - 1 - value.abs().log10().floor() as i32;
    if digits <= 0 {
        return value.round() as f32;
    }
    let factor = 10f64.powi(digits);
    ((value * factor).round() / factor) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, proptest};

    const CAPTION: Caption<'static> = Caption { title: "throughput", unit: "tps", group: "client" };

    #[test]
    fn a_short_series_keeps_every_second() {
        let series = bucketed(CAPTION, 3, 10, |row| Some(row as f64)).unwrap();
        assert_eq!((series.bucket_s, series.min, series.max), (1, vec![Some(1.0), Some(2.0), Some(3.0)], vec![]));
    }

    #[test]
    fn a_stall_of_one_second_survives_four_days() {
        let series = bucketed(CAPTION, 345_600, 1500, |row| Some(if row == 200_000 { 0.0 } else { 1000.0 })).unwrap();
        assert_eq!((series.min.len(), series.max.len(), series.bucket_s), (1497, 1497, 231));
        assert_eq!(series.min.iter().filter(|least| **least == Some(0.0)).count(), 1);
        assert!(series.max.iter().all(|most| *most == Some(1000.0)));
    }

    #[test]
    fn a_gap_stays_a_gap() {
        let series = bucketed(CAPTION, 6, 3, |row| (row > 2).then_some(1.0)).unwrap();
        assert_eq!(series.min, [None, Some(1.0), Some(1.0)]);
        assert_eq!(series.max, series.min);
        assert!(bucketed(CAPTION, 6, 3, |_| None).is_none());
        assert!(bucketed(CAPTION, 0, 3, |_| Some(1.0)).is_none());
    }

    #[test]
    fn a_rate_uses_elapsed_time_and_is_absent_beside_resets() {
        let mut seconds = Seconds::new(6);
        seconds.push_counts("pg_wal_bytes", vec![0, 120, 0, 300, 10, 20], &[true, true, false, true, true, true]);
        seconds.push_counts("time_us", vec![0, 1_200_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000], &[true; 6]);
        let (n, ticks) = (seconds.counts(&columns::PG_WAL_BYTES).unwrap(), Ticks::of(&seconds));
        let mut rate = rates(n, &ticks);
        let found: Vec<_> = (1..6).map(|row| rate(row).map(f64::round)).collect();
        assert_eq!(found, [Some(100.0), None, None, None, Some(10.0)]);
    }

    #[test]
    fn few_trials_get_the_full_width_and_many_share_it() {
        assert_eq!(Buckets::for_trials(4), Buckets { client: 1500, telemetry: 400, heatmap: 240 });
        let many = Buckets::for_trials(40);
        assert!(many.client >= 1000 && many.telemetry >= 120, "{many:?}");
        assert_eq!(Buckets::for_trials(100_000), Buckets { client: 24, telemetry: 24, heatmap: 24 });
    }

    proptest! {
        #[test]
        fn the_extremes_of_a_series_are_never_lost(values in proptest::collection::vec(0.001f64..1e9, 1..400), most in 1usize..50) {
            let series = bucketed(CAPTION, values.len(), most, |row| Some(values[row - 1])).unwrap();
            let close = |a: f64, b: f32| (f64::from(b) / a - 1.0).abs() < 1e-3;
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let largest = values.iter().copied().fold(0.0, f64::max);
            prop_assert!(series.min.len() <= most);
            let found = series.min.iter().flatten().copied().fold(f32::INFINITY, f32::min);
            prop_assert!(close(least, found));
            let all = if series.max.is_empty() { &series.min } else { &series.max };
            prop_assert!(close(largest, all.iter().flatten().copied().fold(0.0, f32::max)));
        }
    }
}
