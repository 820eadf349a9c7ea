//! What was counted against what the tool that drove the load says itself.

use super::findings::CrossCheck;
use crate::record::counts::{Counts, Measure, Reported};

/// What the tool's mean latency and ours may differ by.
const LATENCY_TOLERANCE: f64 = 0.01;

/// Tools print milliseconds with three decimals: half of the last one is rounding.
const ROUNDING_MS: f64 = 0.000_5;

/// The main measure of a trial against the tool's summary; empty where there is none.
#[must_use]
pub fn of(counts: &Counts) -> Vec<CrossCheck> {
    let (Some(reported), Some(main)) = (&counts.reported, counts.measures.first()) else { return Vec::new() };
    let own_done = main.done.unwrap_or(0);
    let exact = [
        (main.name.as_str(), Some(reported.done), own_done),
        ("failed", reported.failed, main.failed),
        ("skipped", reported.skipped, main.skipped),
        ("late", reported.late, main.late),
    ];
    let exact = exact.into_iter().filter_map(|(what, tool, own)| {
        let tool = tool?;
        let what = what.to_owned();
        Some(CrossCheck { what, tool: tool as f64, own: own as f64, agrees: tool == own, tolerance: 0.0 })
    });
    exact.chain(mean_latency(reported, main)).collect()
}

fn mean_latency(reported: &Reported, main: &Measure) -> Option<CrossCheck> {
    let tool = reported.latency_ms_mean.filter(|tool| tool.is_finite())?;
    let done = main.done.filter(|done| *done > 0)?;
    let own = main.latency_us_sum as f64 / done as f64 / 1e3;
    let agrees = (own - tool).abs() <= LATENCY_TOLERANCE * tool + ROUNDING_MS;
    Some(CrossCheck { what: "latency_ms_mean".to_owned(), tool, own, agrees, tolerance: LATENCY_TOLERANCE })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(reported: Reported) -> Counts {
        let main = Measure {
            name: "transactions".to_owned(),
            done: Some(1000),
            failed: 2,
            latency_us_sum: 1_500_000,
            ..Measure::default()
        };
        Counts { measures: vec![main], reported: Some(reported), ..Counts::default() }
    }

    #[test]
    fn counts_agree_exactly_and_mean_latencies_within_a_hundredth() {
        let checked = |failed, latency_ms_mean| {
            let reported = Reported { done: 1000, failed: Some(failed), latency_ms_mean, ..Reported::default() };
            of(&counts(reported)).into_iter().map(|check| (check.what, check.agrees)).collect::<Vec<_>>()
        };
        let expected = |failed, latency| {
            [("transactions", true), ("failed", failed), ("latency_ms_mean", latency)]
                .map(|(what, agrees)| (what.to_owned(), agrees))
        };
        assert_eq!(checked(2, Some(1.514)), expected(true, true));
        assert_eq!(checked(3, Some(1.52)), expected(false, false));
        assert_eq!(checked(2, None), expected(true, true)[..2]);
    }

    #[test]
    fn nothing_is_checked_that_no_tool_reports() {
        assert_eq!(of(&Counts { reported: None, ..counts(Reported::default()) }), []);
    }
}
