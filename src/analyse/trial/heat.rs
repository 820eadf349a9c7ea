//! Latencies over time: the intervals of `latency.hist` on a coarse grid of time and logarithmic latency.

use crate::analyse::findings::Heatmap;
use crate::analyse::trial::input::HeatInterval;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Rows per power of ten: a row spans a factor of 1.26.
const ROWS_PER_DECADE: u32 = 10;

/// Sorts the latencies of an interval, microseconds, into rows.
pub fn interval(start_us: u64, latencies: &Histogram<u64>) -> HeatInterval {
    let mut rows: Vec<(u32, u64)> = Vec::new();
    for value in latencies.iter_recorded() {
        let row = row(latencies.median_equivalent(value.value_iterated_to()));
        match rows.last_mut() {
            Some((last, count)) if *last == row => *count += value.count_at_value(),
            _ => rows.push((row, value.count_at_value())),
        }
    }
    HeatInterval { start_us, rows }
}

/// Row of a latency; latencies below 1 us go into the first.
fn row(us: u64) -> u32 {
    ((us.max(1) as f64).log10() * f64::from(ROWS_PER_DECADE)) as u32
}

/// Heatmap of the first `seconds`, in at most `most` columns; `None` without an operation.
pub fn heatmap(intervals: &[HeatInterval], seconds: usize, most: usize) -> Option<Heatmap> {
    let bucket = seconds.div_ceil(most.max(1)).max(1);
    let mut sums: Vec<BTreeMap<u32, u64>> = vec![BTreeMap::new(); seconds.div_ceil(bucket)];
    for interval in intervals {
        let column = usize::try_from(interval.start_us / 1_000_000).unwrap_or(usize::MAX) / bucket;
        // Operations that ended after the last whole second have no column.
        let Some(column) = sums.get_mut(column) else { continue };
        for (row, count) in &interval.rows {
            *column.entry(*row).or_default() += count;
        }
    }
    let column = |rows: BTreeMap<u32, u64>| {
        let Some((first, last)) = rows.keys().next().copied().zip(rows.keys().next_back().copied()) else {
            return (0, Vec::new());
        };
        (first, (first..=last).map(|row| rows.get(&row).copied().unwrap_or(0)).collect())
    };
    sums.iter().any(|rows| !rows.is_empty()).then(|| Heatmap {
        bucket_s: u32::try_from(bucket).unwrap_or(u32::MAX),
        rows_per_decade: ROWS_PER_DECADE,
        columns: sums.into_iter().map(column).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[u64]) -> Histogram<u64> {
        let mut latencies = Histogram::new(3).unwrap();
        values.iter().for_each(|value| latencies.record(*value).unwrap());
        latencies
    }

    #[test]
    fn operations_lie_in_the_row_of_their_power_of_ten() {
        let found = interval(0, &histogram(&[1, 10, 12, 13, 1000, 4_213_000]));
        assert_eq!(found.rows, [(0, 1), (10, 2), (11, 1), (30, 1), (66, 1)]);
        let map = heatmap(&[found], 1, 10).unwrap();
        let (first, counts) = &map.columns[0];
        assert_eq!((*first, counts.len(), counts.iter().sum::<u64>()), (0, 67, 6));
        assert_eq!((counts[10], counts[30], counts[31]), (2, 1, 0));
    }

    #[test]
    fn seconds_merge_into_columns_and_a_stall_is_empty() {
        let at = |second: u64, values: &[u64]| interval(second * 1_000_000, &histogram(values));
        let intervals = [at(0, &[100]), at(1, &[100, 100_000]), at(4, &[100]), at(6, &[100])];
        let map = heatmap(&intervals, 6, 3).unwrap();
        assert_eq!((map.bucket_s, map.columns.len()), (2, 3));
        assert_eq!((map.columns[0].0, map.columns[0].1[0], map.columns[0].1.last()), (20, 2, Some(&1)));
        assert_eq!(map.columns[1], (0, vec![]));
        assert_eq!(map.columns[2], (20, vec![1]), "what ended after the last second is left out");
        assert!(heatmap(&[], 6, 3).is_none());
    }
}
