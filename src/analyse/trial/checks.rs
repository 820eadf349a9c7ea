//! Compares pgstrata's counts with those that the load tool reports.

use crate::analyse::findings::CrossCheck;
use crate::analyse::trial::rates::rate_of;
use crate::record::counts::{Counts, Measure, Reported};
use crate::record::operation::Operation;

/// Allowed relative difference between the tool's mean latency and ours.
const LATENCY_TOLERANCE: f64 = 0.01;

/// Allowed relative difference in the measured time: the tool counts from when its connections are up until its threads
/// have ended, we from the start of the first operation to the end of the last.
const TIME_TOLERANCE: f64 = 0.005;
/// ... and at least this much, seconds.
const TIME_TOLERANCE_S: f64 = 0.1;
/// At a fixed rate the first operation is not due at once, nor the last one at the end: allow this many mean pauses,
/// which practically never occur (e^-10 at each end).
const PAUSES: f64 = 20.0;

/// Tools print milliseconds with three decimals; half of the last digit is rounding.
const ROUNDING_MS: f64 = 0.000_5;

/// Before version 14, pgbench subtracts an estimated connection time that is off by up to this much per client,
/// seconds.
const CONNECTION_S: f64 = 0.005;

/// Compares the main measure of a trial with the tool's summary; empty if there is none.
pub fn of(counts: &Counts, operation: &Operation) -> Vec<CrossCheck> {
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
    // For a sample, the counts are the tool's own.
    let is_sample = operation.log_sample.is_some_and(|share| share < 1.0);
    if is_sample {
        return tps(reported, main, operation).into_iter().collect();
    }
    exact.chain(tps(reported, main, operation)).chain(mean_latency(reported, main)).collect()
}

/// Compares the rate by way of the time it covers: a clock set while pgbench before version 14 ran, which logs wall
/// time, shows only here.
fn tps(reported: &Reported, main: &Measure, operation: &Operation) -> Option<CrossCheck> {
    let tool = reported.tps.filter(|tool| tool.is_finite() && *tool > 0.0)?;
    let own = rate_of(main).filter(|own| *own > 0.0)?;
    let (tool_s, own_s) = (reported.done as f64 / tool, main.elapsed_us as f64 / 1e6);
    let pauses_s = operation.rate.map_or(0.0, |rate| PAUSES / rate);
    let connecting_s = if reported.connection_ms.is_some() { 0.0 } else { CONNECTION_S * operation.clients as f64 };
    let allowed_s = TIME_TOLERANCE * tool_s + TIME_TOLERANCE_S + pauses_s + connecting_s;
    let agrees = (tool_s - own_s).abs() <= allowed_s;
    Some(CrossCheck { what: "tps".to_owned(), tool, own, agrees, tolerance: allowed_s / tool_s })
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
    use crate::record::operation::Writes;
    use std::collections::BTreeMap;

    fn operation(rate: Option<f64>) -> Operation {
        Operation {
            noun: "transaction".to_owned(),
            unit: "tps".to_owned(),
            writes: Writes::Always,
            clients: 1,
            rate,
            profile_rate: None,
            is_searched: false,
            latency_limit_us: None,
            cache: None,
            scripts: Vec::new(),
            scale: None,
            query_mode: None,
            log_sample: None,
            script_settings: Vec::new(),
            settings: BTreeMap::new(),
        }
    }

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
            of(&counts(reported), &operation(None))
                .into_iter()
                .map(|check| (check.what, check.agrees))
                .collect::<Vec<_>>()
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
        assert_eq!(of(&Counts { reported: None, ..counts(Reported::default()) }, &operation(None)), []);
    }

    /// True if pgbench's rate agrees with 1000 transactions in this many seconds.
    fn rate_agrees(tps: f64, seconds: f64, at_rate: Option<f64>) -> bool {
        let mut counts = counts(Reported { done: 1000, tps: Some(tps), ..Reported::default() });
        counts.measures[0].elapsed_us = (seconds * 1e6) as u64;
        of(&counts, &operation(at_rate)).into_iter().find(|check| check.what == "tps").unwrap().agrees
    }

    #[test]
    fn a_rate_that_disagrees_with_the_elapsed_time_is_reported() {
        assert!(rate_agrees(100.0, 10.0, None) && rate_agrees(100.0, 9.87, None));
        assert!(!rate_agrees(100.0, 9.7, None), "three per cent of ten seconds");
        assert!(!rate_agrees(100.0, 3610.0, None), "the clock was set an hour ahead");
        assert!(!rate_agrees(100.0, 8.0, None), "and two seconds back");
        assert!(rate_agrees(100.0, 9.7, Some(100.0)), "at a rate the first one was not due at once");
        assert!(!rate_agrees(100.0, 8.0, Some(100.0)));
    }
}
