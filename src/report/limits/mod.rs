//! Limits against a baseline, as text for a terminal and as a JUnit file. Their JSON is the findings themselves.

mod junit;
mod terminal;
#[cfg(test)]
mod tests;

pub use junit::junit;
pub use terminal::terminal;

use crate::analyse::limits::{Compliance, LimitFinding, LimitFindings};
use crate::analyse::words::digits::rounded;

fn word(outcome: Compliance) -> &'static str {
    match outcome {
        Compliance::Pass => "pass",
        Compliance::Fail => "FAIL",
        Compliance::Undecided => "undecided",
    }
}

fn count(findings: &LimitFindings, outcome: Compliance) -> usize {
    findings.limits.iter().filter(|one| one.outcome == outcome).count()
}

/// Summary of the outcomes: "1 of 3 limits exceeded, 1 undecided".
fn summary(findings: &LimitFindings) -> String {
    let all = findings.limits.len();
    let (exceeded, undecided) = (count(findings, Compliance::Fail), count(findings, Compliance::Undecided));
    match (all, exceeded, undecided) {
        (0, ..) => "nothing was checked: no figure that a limit names is in both".to_owned(),
        (_, 0, 0) => format!("{all} of {all} limits kept"),
        (_, 0, _) => format!("{undecided} of {all} limits undecided, none exceeded"),
        (_, _, 0) => format!("{exceeded} of {all} limits exceeded"),
        _ => format!("{exceeded} of {all} limits exceeded, {undecided} undecided"),
    }
}

/// The change with its interval: `-8.1 % (-9.9 to -6.2 %)`.
fn change(finding: &LimitFinding) -> String {
    let Some(change) = finding.change else { return "not compared".to_owned() };
    match change.low.zip(change.high) {
        Some((low, high)) => format!("{} % ({} to {} %)", signed(change.value), signed(low), signed(high)),
        None => format!("{} % (no interval)", signed(change.value)),
    }
}

/// A share as per cent with its sign: `+8.1`.
fn signed(share: f64) -> String {
    let text = rounded(share * 100.0, -1);
    if text.starts_with('-') { text } else { format!("+{text}") }
}
