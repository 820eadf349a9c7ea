//! Percentiles of each case against those of its baseline.

use crate::analyse::case::percentiles::Percentiles;
use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::{CaseFinding, Estimate, PairOutcome, PercentileRatio, Ranking};
use crate::stats::ratio::ratio;

/// Adds the 99th percentile to each ranked case.
pub fn rank_rows(rankings: &mut [Ranking], found: &[CaseFinding]) {
    for ranking in rankings {
        for row in ranking.classes.iter_mut().flat_map(|class| &mut class.rows) {
            let measures = found.iter().filter(|case| case.id == row.case).flat_map(|case| &case.measures);
            let measure = measures.into_iter().find(|measure| measure.name == ranking.measure);
            let latency = measure.and_then(|measure| measure.latency.as_ref());
            row.latency_us_p99 = latency.and_then(|latency| latency.percentile("p99")?.over_trials);
        }
    }
}

/// Compares the percentiles of each ranked measure with those of its baseline.
pub fn compare(rankings: &[Ranking], sums: &[CaseSums], found: &mut [CaseFinding]) {
    for ranking in rankings {
        let rows = ranking.classes.iter().flat_map(|class| &class.rows);
        for (case, baseline) in rows.filter_map(|row| Some((&row.case, &row.comparison.as_ref()?.baseline))) {
            let [own, base] = [case, baseline].map(|id| {
                let case = sums.iter().find(|sums| sums.spec.id == *id)?;
                case.measures.iter().find(|sums| sums.name == ranking.measure).map(|measure| &measure.percentiles)
            });
            let Some((own, base)) = own.zip(base) else { continue };
            let found = found.iter_mut().filter(|found| found.id == *case).flat_map(|found| &mut found.measures);
            let latency =
                found.filter(|measure| measure.name == ranking.measure).filter_map(|found| found.latency.as_mut());
            for percentile in latency.flat_map(|latency| &mut latency.percentiles) {
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
        outcome: PairOutcome::of(found.tells_apart(), false),
    })
}
