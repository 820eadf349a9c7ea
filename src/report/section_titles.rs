//! Summaries of the page's folded sections, shown after their titles.

use super::device_work::one_write;
use super::environment::machine_names;
use super::labelled::Labelled;
use super::words::{bounded, in_ms, latency, percent};
use crate::analyse::findings::CaseFinding;
use crate::units::{Bytes, count, significant};
use minijinja::{Value, context};

/// One clause per section; none without data.
pub(super) fn section_titles(labelled: &Labelled<'_>) -> Value {
    let findings = labelled.findings;
    let windows = findings.trials.iter().filter_map(|trial| trial.window.as_ref());
    let checkpoints: usize = windows.map(|window| window.checkpoints.len()).sum();
    let checks: Vec<bool> = findings.trials.iter().flat_map(|trial| &trial.checks).map(|check| check.agrees).collect();
    let agree = checks.iter().filter(|agrees| **agrees).count();
    context! {
        latency => labelled.extremes("p99", p99_ms, |ms| format!("{} ms", significant(ms))),
        waits => labelled.extremes("storage", |case| Some(case.backend_time.as_ref()?.storage?.value), percent),
        steadiness => labelled
            .most(|case| Some((case.steadiness.as_ref()?.longest_stall_us?, case.log_sample.is_some())))
            .map(|(label, (us, sampled))| {
                format!("longest stall {}, {label}", bounded("at least", sampled, latency(us)))
            }),
        strata => labelled.extremes(
            "WAL",
            |case| case.strata.as_ref()?.wal_bytes.filter(|bytes| *bytes > 0.0),
            |bytes| Bytes(bytes.round() as u64).to_string(),
        ),
        windows => (checkpoints > 0).then(|| count(checkpoints, "checkpoint")),
        synced => labelled.extremes(
            "fdatasync",
            |case| Some(one_write(case, "fdatasync")?.rate.as_ref()?.value),
            |rate| format!("{}/s", significant(rate)),
        ),
        environment => Some(machine_names(&findings.machines)).filter(|names| !names.is_empty()),
        checks => (!checks.is_empty()).then(|| format!("{agree} of {} agree", checks.len())),
    }
}

fn p99_ms(case: &CaseFinding) -> Option<f64> {
    Some(in_ms(&case.measures.first()?.latency.as_ref()?.percentile("p99")?.over_trials?).value)
}

impl Labelled<'_> {
    fn most<N: PartialOrd + Copy>(&self, of: impl Fn(&CaseFinding) -> Option<N>) -> Option<(&str, N)> {
        let known = self.findings.cases.iter().filter_map(|case| Some((self.label(&case.id), of(case)?)));
        known.reduce(|one, other| if other.1 > one.1 { other } else { one })
    }

    /// "p99 14 ms (ext4) to 21 ms (btrfs)".
    fn extremes(&self, what: &str, of: fn(&CaseFinding) -> Option<f64>, words: fn(f64) -> String) -> Option<String> {
        let (least_label, least) = self.most(|case| of(case).map(|value| -value))?;
        let (most_label, most) = self.most(of)?;
        let (least, most) = (words(-least), words(most));
        Some(if least_label == most_label {
            format!("{what} {least}")
        } else {
            format!("{what} {least} ({least_label}) to {most} ({most_label})")
        })
    }
}
