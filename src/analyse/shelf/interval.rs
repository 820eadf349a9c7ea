//! Over how many seconds rates were counted: iostat divides whole counts by the time between two of its reports, so the
//! rates of one report are whole counts over one and the same time. Those of an average since boot are not.

use super::select::Found;

/// Longest interval that is looked for, seconds.
const LONGEST_S: u32 = 5;
/// How far a timer may be off, relative.
const JITTER: f64 = 0.01;
/// Steps of the search inside that, on each side.
const STEPS: i32 = 100;
/// Largest chance at which rates that are no counts may look like ones.
const CHANCE: f64 = 1e-3;

/// A rate and half of its last printed digit.
pub(super) type Printed = (f64, f64);

/// Rates that count requests or sectors and were printed with decimals.
pub(super) fn printed(row: &Found<'_>) -> Vec<Printed> {
    const REQUESTS: [&str; 4] = ["read_ops_per_s", "write_ops_per_s", "read_merges_per_s", "write_merges_per_s"];
    const SECTORS: [&str; 2] = ["read_bytes_per_s", "write_bytes_per_s"];
    const SECTOR: f64 = 512.0;
    let of = |name: &str, unit: f64| {
        let figure = row.figure(name).filter(|figure| figure.value > 0.0)?;
        let (_, decimals) = figure.text.rsplit_once('.')?;
        let half = 0.5 * 0.1f64.powi(i32::try_from(decimals.len()).ok()?);
        // Bytes may have been printed as sectors, which are whole counts too, or as KiB, which are not.
        let count: f64 = figure.text.parse().ok()?;
        (count * unit == figure.value).then_some((count, half))
    };
    let requests = REQUESTS.iter().filter_map(|name| of(name, 1.0));
    requests.chain(SECTORS.iter().filter_map(|name| of(name, SECTOR))).collect()
}

/// Seconds over which these rates were counted: of all times that fit the one that rates which are no counts would fit
/// least often. `None` where there is none, or where there are too few rates to tell it from chance.
pub(super) fn seconds(rates: &[Printed]) -> Option<f64> {
    let mut distinct = rates.to_vec();
    distinct.sort_by(|a, b| a.0.total_cmp(&b.0));
    distinct.dedup_by(|a, b| a.0 == b.0);
    let fits = |seconds: f64| {
        let whole = |(rate, half): &Printed| {
            let count = rate * seconds;
            (count - count.round()).abs() <= half * seconds * 1.001
        };
        distinct.iter().all(whole)
    };
    let candidates = (-STEPS..=STEPS).flat_map(|step| (1..=LONGEST_S).map(move |seconds| (step, f64::from(seconds))));
    let fitting = candidates.filter_map(|(step, whole)| {
        let seconds = whole * (1.0 + JITTER * f64::from(step) / f64::from(STEPS));
        let tries = f64::from(LONGEST_S) * (2.0 * f64::from(step.abs()) + 1.0);
        let one = distinct.iter().map(|(_, half)| (2.0 * half * seconds).min(1.0)).product::<f64>();
        fits(seconds).then_some((seconds, tries * one))
    });
    let best = fitting.min_by(|a, b| a.1.total_cmp(&b.1))?;
    (best.1 <= CHANCE).then_some(best.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    fn rounded(rates: &[f64], decimals: i32) -> Vec<Printed> {
        let scale = 10f64.powi(decimals);
        rates.iter().map(|rate| ((rate * scale).round() / scale, 0.5 / scale)).collect()
    }

    #[test]
    fn an_interval_is_known_from_enough_rates() {
        assert_eq!(seconds(&rounded(&[1126.67, 1242.0, 18.33], 2)), Some(3.0));
        assert_eq!(seconds(&rounded(&[1124.0, 1242.0, 18.0], 2)), Some(1.0));
        assert_eq!(seconds(&rounded(&[1126.67], 2)), None, "one may be chance");
        assert_eq!(seconds(&[]), None);
        let freebsd = [416.6, 429.6, 433.6, 421.6, 417.6, 438.6, 437.6, 428.6];
        let found = seconds(&rounded(&freebsd, 1)).unwrap();
        assert!((found - 1.001).abs() < 2e-4, "{found}");
    }

    #[test]
    fn averages_since_boot_are_counts_over_no_interval() {
        let since_boot = [4.73, 11.91, 0.37, 128.44, 63.02];
        assert_eq!(seconds(&rounded(&since_boot, 2)), None);
    }

    proptest! {
        #[test]
        fn counts_over_whole_seconds_are_found(counts in prop::collection::vec(1u32..100_000, 4..8), over in 1u32..=5) {
            let rates: Vec<f64> = counts.iter().map(|count| f64::from(*count) / f64::from(over)).collect();
            if let Some(found) = seconds(&rounded(&rates, 2)) {
                // Counts with a common divisor fit a shorter time.
                prop_assert!(found <= f64::from(over));
                prop_assert_eq!(found.fract(), 0.0);
            }
        }
    }
}
