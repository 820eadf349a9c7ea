//! A run of days: memory stays bounded, and no stall is lost.

use crate::analyse::analysis::Analysis;
use crate::analyse::stories::columns::{rows, run};
use crate::analyse::trial::input::{PhaseLatencies, TrialInput};
use crate::record::case::TrialKey;

/// Rows of four days.
const ROWS: usize = 4 * 86_400 + 1;
/// The second without any operation.
const STALL: usize = 123_456;

#[test]
fn forty_cases_of_four_days_fit_a_small_document() {
    const CASES: usize = 40;
    let (mut story, record) = run(ROWS);
    story.input.run.order = (0..CASES).map(|case| TrialKey { case: format!("case{case}"), trial: 1 }).collect();
    let mut analysis = Analysis::new(story.input);
    analysis.add_trial(TrialInput {
        record,
        seconds: rows(ROWS, STALL),
        latencies: Vec::new(),
        phases: PhaseLatencies::default(),
        heat: Vec::new(),
    });
    let found = analysis.finish();
    let json = serde_json::to_string(&found).unwrap();
    assert!(json.len() * CASES < 6_000_000, "{} bytes for one of {CASES}", json.len());

    let throughput = found.trials[0].throughput.as_ref().unwrap();
    assert!(throughput.min.len() > 1000);
    assert_eq!(throughput.min.iter().filter(|least| **least == Some(0.0)).count(), 1);
    assert_eq!(
        found.trials[0].telemetry.len(),
        41,
        "{:?}",
        found.trials[0].telemetry.iter().map(|s| &s.title).collect::<Vec<_>>()
    );
    assert_eq!(found.cases[0].steadiness.as_ref().unwrap().seconds_at_zero, 1);
}
