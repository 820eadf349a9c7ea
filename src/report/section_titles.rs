//! Summaries of the page's folded sections, shown after their titles.

use super::environment::machine_names;
use super::labelled::Labelled;
use super::words::{in_ms, latency, percent};
use crate::analyse::findings::{CaseFinding, Family};
use crate::units::{Bytes, count, significant};
use serde::Serialize;

/// One clause per section; `None` without data.
#[derive(Debug, Serialize)]
pub(super) struct SectionTitles {
    latency: Option<String>,
    waits: Option<String>,
    steadiness: Option<String>,
    strata: Option<String>,
    windows: Option<String>,
    synced: Option<String>,
    environment: Option<String>,
    checks: Option<String>,
}

impl SectionTitles {
    pub(super) fn of(labelled: &Labelled<'_>) -> SectionTitles {
        let findings = labelled.findings;
        let p99 = |case: &CaseFinding| {
            Some(case.measures.first()?.latency.as_ref()?.percentile("p99")?.over_trials?).map(|found| in_ms(&found))
        };
        let storage = |case: &CaseFinding| case.backend_time.as_ref()?.storage;
        let stall = |case: &CaseFinding| case.steadiness.as_ref()?.longest_stall_us;
        let wal = |case: &CaseFinding| case.strata.as_ref()?.wal_bytes;
        let synced = |case: &CaseFinding| {
            let rows = || case.synced.iter().flat_map(|synced| &synced.rows);
            Some(rows().find(|row| row.family == Family::OneWrite && row.label == "fdatasync")?.rate.as_ref()?.value)
        };
        let windows = findings.trials.iter().filter_map(|trial| trial.window.as_ref());
        let checkpoints: usize = windows.map(|window| window.checkpoints.len()).sum();
        let checks = || findings.trials.iter().flat_map(|trial| &trial.checks);
        let agree = checks().filter(|check| check.agrees).count();
        SectionTitles {
            latency: labelled
                .extremes(|case| p99(case).map(|found| found.value), |ms| format!("{} ms", significant(ms)))
                .map(|found| format!("p99 {found}")),
            waits: labelled
                .extremes(|case| storage(case).map(|found| found.value), percent)
                .map(|found| format!("storage {found}")),
            steadiness: labelled.most(stall).map(|(label, us)| format!("longest stall {}, {label}", latency(us))),
            strata: labelled
                .extremes(wal, |bytes| Bytes(bytes.round() as u64).to_string())
                .map(|found| format!("WAL {found}")),
            windows: (checkpoints > 0).then(|| count(checkpoints, "checkpoint")),
            synced: labelled
                .extremes(synced, |rate| format!("{}/s", significant(rate)))
                .map(|found| format!("fdatasync {found}")),
            environment: Some(machine_names(&findings.machines)).filter(|names| !names.is_empty()),
            checks: (checks().count() > 0).then(|| format!("{agree} of {} agree", checks().count())),
        }
    }
}

impl Labelled<'_> {
    fn most<N: PartialOrd + Copy>(&self, of: impl Fn(&CaseFinding) -> Option<N>) -> Option<(&str, N)> {
        let known = self.findings.cases.iter().filter_map(|case| Some((self.label(&case.id), of(case)?)));
        known.reduce(|one, other| if other.1 > one.1 { other } else { one })
    }

    /// "14 ms (ext4) to 21 ms (btrfs)".
    fn extremes(&self, of: impl Fn(&CaseFinding) -> Option<f64>, words: impl Fn(f64) -> String) -> Option<String> {
        let (least_label, least) = self.most(|case| of(case).map(|value| -value))?;
        let (most_label, most) = self.most(of)?;
        let (least, most) = (words(-least), words(most));
        Some(if least_label == most_label {
            least
        } else {
            format!("{least} ({least_label}) to {most} ({most_label})")
        })
    }
}
