//! Limits as shown to users and to CI servers.

use super::{junit, terminal};
use crate::analyse::findings::Estimate;
use crate::analyse::limits::{Compliance, FORMAT, LimitFinding, LimitFindings};

fn finding(outcome: Compliance, case: &str, change: Option<(f64, f64, f64)>) -> LimitFinding {
    LimitFinding {
        outcome,
        case: case.to_owned(),
        measure: "pgbench/tpcb-like/tps".to_owned(),
        limit: "tps -5 %".to_owned(),
        unit: "tps".to_owned(),
        value: change.map(|(value, ..)| 1000.0 * (1.0 + value)),
        baseline: Some(1000.0),
        change: change.map(|(value, low, high)| Estimate::of(value, Some((low, high)), 3)),
        how: "from 3 and 3 trials without common blocks".to_owned(),
    }
}

fn findings(limits: Vec<LimitFinding>) -> LimitFindings {
    LimitFindings {
        format: FORMAT,
        checked_by: "0".to_owned(),
        outcome: Compliance::Fail,
        run: "results/new".to_owned(),
        baseline: "results/old".to_owned(),
        started: "2026-03-02T09:14:33Z".to_owned(),
        took_s: Some(61.25),
        paired: false,
        rerun: None,
        limits,
        notes: vec!["The run has 2 of 3 trials".to_owned()],
        facts_that_differ: Vec::new(),
    }
}

fn all_three() -> LimitFindings {
    findings(vec![
        finding(Compliance::Pass, "ext4", Some((0.01, -0.02, 0.04))),
        finding(Compliance::Fail, "xfs", Some((-0.081, -0.099, -0.062))),
        finding(Compliance::Undecided, "btrfs", None),
    ])
}

#[test]
fn a_terminal_shows_the_verdict_first_and_limits_with_intervals() {
    let text = terminal(&all_three());
    assert!(text.starts_with("FAIL: 1 of 3 limits exceeded, 1 undecided\n"), "{text}");
    assert!(text.contains("-8.1 % (-9.9 to -6.2 %)") && text.contains("+1.0 % (-2.0 to +4.0 %)"), "{text}");
    assert!(text.contains("not compared") && text.contains("The run has 2 of 3 trials."), "{text}");
}

#[test]
fn a_junit_file_counts_failures_and_calls_the_undecided_errors() {
    let text = junit(&all_three());
    assert_eq!(text.matches("tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"0\"").count(), 2, "{text}");
    assert!(text.contains("<testcase classname=\"ext4\" name=\"tps -5 % (pgbench/tpcb-like/tps)\"/>"), "{text}");
    assert!(text.contains("<failure type=\"exceeded\" message=\"-8.1 % (-9.9 to -6.2 %); from 3"), "{text}");
    assert!(text.contains("<error type=\"undecided\" message=\"not compared; from 3"), "{text}");
}

#[test]
fn a_junit_file_has_start_time_and_duration_where_known() {
    let text = junit(&all_three());
    assert!(text.contains("skipped=\"0\" timestamp=\"2026-03-02T09:14:33\" time=\"61.250\">"), "{text}");
    assert!(
        text.contains(
            "<testsuites name=\"pgstrata check\" tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"0\" time=\"61.250\">"
        ),
        "{text}"
    );
    let open = junit(&LimitFindings { took_s: None, ..all_three() });
    assert!(open.contains("timestamp=") && !open.contains(" time="), "{open}");
}

#[test]
fn hostile_names_stay_text_in_a_junit_file() {
    let text = junit(&findings(vec![finding(Compliance::Pass, "\"/><x a='&'\u{1b}\u{202e}", None)]));
    assert!(text.contains("classname=\"&quot;/&gt;&lt;x a=&apos;&amp;&apos;{U+001B}{U+202E}\""), "{text}");
}
