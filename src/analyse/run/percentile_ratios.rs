//! Percentiles of each case against those of its baseline.

use crate::analyse::case::percentiles::Percentiles;
use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::{CaseFinding, Estimate, PairOutcome, PercentileRatio, Ranking};
use crate::stats::ratio::ratio;

/// Adds to each ranked case its 99th percentile, and compares all its percentiles with those of its baseline.
pub fn compare(rankings: &mut [Ranking], sums: &[CaseSums], found: &mut [CaseFinding]) {
    for ranking in rankings {
        for row in ranking.classes.iter_mut().flat_map(|class| &mut class.rows) {
            let measures = found.iter_mut().filter(|case| case.id == row.case).flat_map(|case| &mut case.measures);
            let measure = measures.into_iter().find(|measure| measure.name == ranking.measure);
            let Some(latency) = measure.and_then(|measure| measure.latency.as_mut()) else { continue };
            row.latency_us_p99 = latency.percentile("p99").and_then(|percentile| percentile.over_trials);
            let Some(baseline) = row.comparison.as_ref().map(|comparison| &comparison.baseline) else { continue };
            let [own, base] = [&row.case, baseline].map(|id| {
                let case = sums.iter().find(|sums| sums.spec.id == *id)?;
                case.measures.iter().find(|sums| sums.found.name == ranking.measure).map(|measure| &measure.percentiles)
            });
            let Some((own, base)) = own.zip(base) else { continue };
            for percentile in &mut latency.percentiles {
                percentile.comparison = ratio_of(own, base, &percentile.name, baseline);
            }
        }
    }
}

fn ratio_of(own: &Percentiles, base: &Percentiles, name: &str, baseline: &str) -> Option<PercentileRatio> {
    let (own, base) = (own.trials(name)?, base.trials(name)?);
    let found = ratio(&own, &base)?;
    Some(PercentileRatio {
        baseline: baseline.to_owned(),
        ratio: Estimate::of_ratio(&found, own.len().min(base.len())),
        outcome: PairOutcome::of(found.tells_apart(), None),
    })
}
