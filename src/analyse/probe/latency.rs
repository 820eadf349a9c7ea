//! Latencies of operations: percentiles, stalls, and a coarse histogram on a scale shared by all rows.

use super::findings::Slow;
use crate::analyse::findings::LatencyFinding;
use crate::record::probe::RowRecord;
use crate::units::{Micros, significant};
use std::collections::BTreeMap;

/// Minimum number of operations for a 99th percentile: with fewer it is just the slowest one.
const FEWEST_FOR_P99: u64 = 100;
/// The same for the 99.9th percentile.
const FEWEST_FOR_P999: u64 = 1000;
/// A stall is slower than this many medians of its row ...
const STALL_MEDIANS: u64 = 10;
/// ... and slower than this: shorter delays do not matter.
const STALL_LEAST_NS: u64 = 10_000_000;
/// Upper bounds of the histogram's bins, half a decade each: from 1 us to 1 s.
const BINS: usize = 12;
/// Half decades up to the upper bound of the first bin.
const FIRST_BIN: usize = 7;

/// Number of operations by latency.
pub(crate) type LatencyCounts = BTreeMap<u64, u64>;

/// All latencies of a row.
pub(super) fn counts(row: &RowRecord) -> LatencyCounts {
    sum(row.seconds.iter().flat_map(|second| &second.latencies))
}

/// Operations of several lists by latency.
pub(crate) fn sum<'l>(steps: impl Iterator<Item = &'l (u64, u64)>) -> LatencyCounts {
    let mut all = LatencyCounts::new();
    for (latency, operations) in steps {
        let sum = all.entry(*latency).or_default();
        *sum = sum.saturating_add(*operations);
    }
    all.retain(|_, operations| *operations > 0);
    all
}

/// Percentiles of a row, as far as it has enough operations. The maximum is exact if the row recorded it.
pub(super) fn figures(counts: &LatencyCounts, slowest: &[Slow]) -> Option<LatencyFinding> {
    let exact = slowest.iter().map(|slow| slow.latency_ns).max();
    let operations = total(counts);
    // Latencies in the distribution are rounded up.
    let [p10, p50, p99, p999] =
        [0.1, 0.5, 0.99, 0.999].map(|share| Some(percentile(counts, share)?.min(exact.unwrap_or(u64::MAX))));
    Some(LatencyFinding {
        p10_ns: p10?,
        p50_ns: p50?,
        p99_ns: p99.filter(|_| operations >= FEWEST_FOR_P99),
        p999_ns: p999.filter(|_| operations >= FEWEST_FOR_P999),
        max_ns: exact.or(counts.keys().next_back().copied())?,
    })
}

/// The recorded slow operations that are stalls, and the total number of stalls.
pub(super) fn stalls(counts: &LatencyCounts, slowest: &[Slow]) -> (Vec<Slow>, u64) {
    let Some(median) = percentile(counts, 0.5) else { return (Vec::new(), 0) };
    let limit = median.saturating_mul(STALL_MEDIANS).max(STALL_LEAST_NS);
    let recorded: Vec<Slow> = slowest.iter().filter(|slow| slow.latency_ns > limit).copied().collect();
    let counted = counts.range(limit.saturating_add(1)..).fold(0u64, |sum, (_, n)| sum.saturating_add(*n));
    // Latencies are rounded up in the distribution and exact in the list, so the list may have more.
    let all = counted.max(recorded.len() as u64);
    (recorded, all)
}

/// Text of the definition of a stall.
pub(super) fn stall_rule() -> String {
    let least = Micros(STALL_LEAST_NS / 1000);
    format!("a stall is an operation slower than {STALL_MEDIANS} times its row's median and slower than {least}")
}

pub(super) fn histogram(counts: &LatencyCounts) -> Vec<u64> {
    let uppers = bin_upper_ns();
    let mut bins = vec![0u64; BINS];
    for (latency, operations) in counts {
        let place = uppers.iter().position(|upper| latency <= upper).unwrap_or(BINS - 1);
        bins[place] = bins[place].saturating_add(*operations);
    }
    bins
}

/// Upper bounds of the histogram's bins, ascending.
pub(super) fn bin_upper_ns() -> [u64; BINS] {
    std::array::from_fn(|bin| 10f64.powf((FIRST_BIN + bin) as f64 / 2.0).round() as u64)
}

/// Text of a time in nanoseconds, in a suitable unit.
pub(super) fn span(ns: u64) -> String {
    match ns as f64 {
        ns if ns < 1e3 => format!("{} ns", significant(ns)),
        ns if ns < 1e6 => format!("{} us", significant(ns / 1e3)),
        ns if ns < 1e9 => format!("{} ms", significant(ns / 1e6)),
        ns => format!("{} s", significant(ns / 1e9)),
    }
}

pub(crate) fn total(counts: &LatencyCounts) -> u64 {
    counts.values().fold(0u64, |sum, operations| sum.saturating_add(*operations))
}

/// The smallest latency that at least this share of the operations did not exceed (nearest rank).
pub(crate) fn percentile(counts: &LatencyCounts, share: f64) -> Option<u64> {
    let rank = (total(counts) as f64 * share).ceil().max(1.0);
    let mut passed = 0.0;
    for (latency, operations) in counts {
        passed += *operations as f64;
        if passed >= rank {
            return Some(*latency);
        }
    }
    counts.keys().next_back().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(latencies: &[(u64, u64)]) -> LatencyCounts {
        latencies.iter().copied().collect()
    }

    #[test]
    fn a_percentile_is_given_only_where_the_operations_carry_it() {
        let few = figures(&of(&[(50, 98), (70, 1)]), &[]).unwrap();
        assert_eq!((few.p50_ns, few.p99_ns, few.p999_ns, few.max_ns), (50, None, None, 70));
        let some = figures(&of(&[(50, 98), (70, 2)]), &[]).unwrap();
        assert_eq!((some.p99_ns, some.p999_ns), (Some(70), None));
        let many = figures(&of(&[(50, 9980), (70, 15), (900, 5)]), &[]).unwrap();
        assert_eq!((many.p99_ns, many.p999_ns), (Some(50), Some(70)));
        assert_eq!(figures(&LatencyCounts::new(), &[]), None);
    }

    #[test]
    fn the_slowest_is_exact_where_it_was_recorded() {
        let slowest = [Slow { at_us: 3, latency_ns: 69 }];
        assert_eq!(figures(&of(&[(50, 1), (70, 1)]), &slowest).unwrap().max_ns, 69);
    }

    #[test]
    fn a_stall_is_slow_for_its_row_and_for_people() {
        let slow = |ms: u64| Slow { at_us: 0, latency_ns: ms * 1_000_000 };
        // Median 100 us: 9 ms is 90 medians, but short; 11 ms is a stall.
        let (fast, all) = stalls(&of(&[(100_000, 1000), (9_000_000, 1), (11_000_000, 1)]), &[slow(11), slow(9)]);
        assert_eq!((fast, all), (vec![slow(11)], 1));
        // Median 8 ms, a disk: 11 ms is no stall, 81 ms is.
        let (disk, all) = stalls(&of(&[(8_000_000, 100), (11_000_000, 9), (81_000_000, 2)]), &[slow(81), slow(11)]);
        assert_eq!((disk, all), (vec![slow(81)], 2));
    }

    #[test]
    fn every_operation_is_in_one_bin_of_the_histogram() {
        let bins = histogram(&of(&[(1, 2), (3_162, 1), (3_163, 4), (90_000_000_000, 8)]));
        assert_eq!((bins[0], bins[1], bins[11], bins.iter().sum::<u64>()), (3, 4, 8, 15));
    }
}
