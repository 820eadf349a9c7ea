//! Percentiles of each case against those of its baseline, by the rule that decides rates.

use crate::analyse::case::percentiles::WANTED;
use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::{CaseFinding, Estimate, PercentileRatio, RankedBy, Ranking};
use crate::analyse::run::blocks::RunBlocks;
use crate::analyse::run::decided::Decided;
use crate::analyse::run::ranking::SEED;
use crate::stats::criticals::Criticals;
use crate::stats::ratio::ratio;

/// Adds to each ranked case its 99th percentile, and compares all its percentiles with those of its baseline: inside a
/// class all pairs are tested together.
pub fn compare(rankings: &mut [Ranking], sums: &[CaseSums], found: &mut [CaseFinding], blocks: RunBlocks) {
    let mut criticals = Criticals::seeded(SEED);
    for ranking in rankings {
        let measure = ranking.measure.as_str();
        let trials = |case: &str, name: &str| {
            let case = sums.iter().find(|sums| sums.spec.id == case)?;
            case.measures.iter().find(|sums| sums.found.name == measure)?.percentiles.trials(name)
        };
        for class in &mut ranking.classes {
            let decided = WANTED.map(|wanted| {
                let cases =
                    class.rows.iter().filter_map(|row| Some((row.case.clone(), trials(&row.case, wanted.name)?)));
                Decided::of(cases, RankedBy::Latency, blocks, &mut criticals)
            });
            for row in &mut class.rows {
                let measures = found.iter_mut().filter(|case| case.id == row.case).flat_map(|case| &mut case.measures);
                let of_row = measures.into_iter().find(|found| found.name == measure);
                let Some(latency) = of_row.and_then(|found| found.latency.as_mut()) else { continue };
                row.latency_us_p99 = latency.percentile("p99").and_then(|percentile| percentile.over_trials);
                let Some(base) = row.comparison.as_ref().map(|comparison| &comparison.baseline) else { continue };
                for (percentile, decided) in latency.percentiles.iter_mut().zip(&decided) {
                    let [own, of_base] = [&row.case, base].map(|case| trials(case, &percentile.name));
                    let Some((own, of_base)) = own.zip(of_base) else { continue };
                    percentile.comparison = ratio(&own, &of_base).map(|found| {
                        let (tested, outcome) = decided.compared(&row.case, base, found);
                        let ratio = Estimate::of_ratio(&tested, own.len().min(of_base.len()));
                        PercentileRatio { baseline: base.clone(), ratio, outcome }
                    });
                }
            }
        }
    }
}
