//! Backend activity of one trial over time: the number of the clients' backends in each wait.

use crate::analyse::findings::{WaitOverTime, WaitsOverTime};
use crate::analyse::trial::series::short;
use crate::record::trial::WaitFigures;

/// Waits shown individually; the others are added up.
const WAITS_APART: usize = 8;

/// The first `seconds` of the measurement, whose first operation began at `first_operation_us` (wall clock), in at most
/// `most` buckets; `None` without a sample.
pub fn of_trial(waits: &WaitFigures, first_operation_us: u64, seconds: usize, most: usize) -> Option<WaitsOverTime> {
    let bucket = seconds.div_ceil(most.max(1)).max(1);
    let buckets = seconds.div_ceil(bucket);
    let apart = waits.waits.len().min(WAITS_APART);
    let mut samples = vec![0_u64; buckets];
    // One row per wait, and one for all others.
    let mut seen = vec![vec![0_u64; buckets]; apart + 1];
    for (place, second) in waits.seconds.iter().enumerate() {
        let row = usize::try_from(waits.row(place, first_operation_us)).unwrap_or(usize::MAX);
        let Some(at) = row.checked_sub(1).map(|second| second / bucket).filter(|at| *at < buckets) else { continue };
        samples[at] += u64::from(second.samples);
        for (wait, count) in &second.counts {
            seen[apart.min(*wait as usize)][at] += u64::from(*count);
        }
    }
    let mean = |line: &Vec<u64>| -> Vec<Option<f32>> {
        let pairs = line.iter().zip(&samples);
        pairs.map(|(seen, samples)| (*samples > 0).then(|| short(*seen as f64 / *samples as f64))).collect()
    };
    let wait = |(wait, line): (&crate::record::trial::WaitCount, &Vec<u64>)| WaitOverTime {
        class: wait.class.clone(),
        event: wait.event.clone(),
        backends: mean(line),
    };
    samples.iter().any(|samples| *samples > 0).then(|| WaitsOverTime {
        bucket_s: u32::try_from(bucket).unwrap_or(u32::MAX),
        waits: waits.waits.iter().zip(&seen).take(apart).map(wait).collect(),
        others: mean(&seen[apart]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::trial::{WaitCount, WaitSecond};

    fn figures(seconds: &[(u32, &[(u32, u32)])]) -> WaitFigures {
        let wait = |n: usize| WaitCount { class: "IO".to_owned(), event: format!("e{n}"), count: 1 };
        WaitFigures {
            waits: (0..10).map(wait).collect(),
            seconds: seconds
                .iter()
                .map(|(samples, counts)| WaitSecond { samples: *samples, counts: counts.to_vec() })
                .collect(),
            began_us: 1_000_000,
            ..WaitFigures::default()
        }
    }

    #[test]
    fn backends_belong_to_the_second_with_most_of_the_samples() {
        // The first operation began 0.8 s after the first sample, so most of second 0 lies before it.
        let found = figures(&[(10, &[(0, 99)]), (10, &[(0, 20), (9, 5)]), (0, &[]), (5, &[(1, 10)])]);
        let found = of_trial(&found, 1_800_000, 3, 100).unwrap();
        assert_eq!(found.waits.len(), WAITS_APART);
        assert_eq!(found.waits[0].backends, [Some(2.0), None, Some(0.0)]);
        assert_eq!(found.waits[1].backends, [Some(0.0), None, Some(2.0)]);
        assert_eq!(found.others, [Some(0.5), None, Some(0.0)]);
    }

    #[test]
    fn merged_seconds_are_weighted_by_their_number_of_samples() {
        let found = of_trial(&figures(&[(10, &[(0, 10)]), (30, &[(0, 90)])]), 1_000_000, 2, 1).unwrap();
        assert_eq!((found.bucket_s, found.waits[0].backends.clone()), (2, vec![Some(2.5)]));
        assert!(of_trial(&figures(&[]), 1_000_000, 2, 1).is_none());
    }
}
