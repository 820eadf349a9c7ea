//! Stages over the trials of a case: duration, throughput, and a recovery stage computed from rates.

use crate::analyse::findings::StageFinding;
use crate::analyse::findings::estimate::over_trials;
use crate::analyse::findings::groups::item_of;
use crate::record::counts::Counts;
use crate::record::recovery::RecoveryCounts;
use crate::record::stage::{StageCounts, StageKind};
use crate::stats::moments;
use crate::stats::ratio::BlockMean;

/// Logs have a resolution of milliseconds; shorter durations count as half of one.
const SHORTEST_US: u64 = 500;

/// Share of the former rate at which a server counts as back.
const BACK_AT: f64 = 0.9;
/// Seconds whose mean must reach it, since single seconds are noisy.
const BACK_SECONDS: usize = 3;
/// Final part of the load before the crash that gives the former rate: the first seconds after a checkpoint write more
/// full pages.
const FORMER_PART: f64 = 0.5;

/// Name of the stage that is computed from a recovery.
const BACK: &str = "first answer to 90 % of the rate before";

/// Stages of a case, collected over its trials, in the order of the first trial.
#[derive(Debug, Clone, Default)]
pub struct StageSums {
    trials: u32,
    stages: Vec<StageSum>,
}

#[derive(Debug, Clone, Default)]
pub struct StageSum {
    pub name: String,
    pub kind: StageKind,
    /// Duration in each trial that has the stage, seconds.
    pub seconds: Vec<BlockMean>,
    /// 10^6 bytes per second.
    rates: Vec<BlockMean>,
    bytes: Vec<f64>,
    missing: Option<String>,
    /// Trials in which it was shorter than the log's resolution.
    unresolved: usize,
}

impl StageSums {
    pub fn add(&mut self, trial: u32, counts: &Counts) {
        self.trials += 1;
        for stage in &counts.stages {
            self.add_stage(trial, stage);
        }
        if let Some(recovery) = &counts.recovery {
            let sum = self.stage(BACK, StageKind::Beside);
            match seconds_until_back(recovery) {
                Some(seconds) => sum.seconds.push(BlockMean::of(trial, seconds)),
                None => sum.missing = Some(format!("not within {} s in trial {trial}", recovery.after.len())),
            }
        }
    }

    fn add_stage(&mut self, trial: u32, stage: &StageCounts) {
        let sum = self.stage(&stage.name, stage.kind);
        let seconds = stage.length_us.max(SHORTEST_US) as f64 / 1e6;
        sum.seconds.push(BlockMean::of(trial, seconds));
        sum.unresolved += usize::from(stage.length_us < SHORTEST_US);
        if let Some(bytes) = stage.bytes.filter(|bytes| *bytes > 0) {
            sum.bytes.push(bytes as f64);
            sum.rates.push(BlockMean::of(trial, bytes as f64 / 1e6 / seconds));
        }
    }

    fn stage(&mut self, name: &str, kind: StageKind) -> &mut StageSum {
        let new = || StageSum { name: name.to_owned(), kind, ..StageSum::default() };
        item_of(&mut self.stages, |known| known.name == name, new)
    }

    /// Stages by which cases are ranked.
    pub fn ranked(&self) -> impl Iterator<Item = &StageSum> {
        self.stages.iter().filter(|stage| stage.kind == StageKind::Ranked)
    }

    pub fn findings(&self) -> Vec<StageFinding> {
        self.stages.iter().map(|stage| stage.finding(self.trials)).collect()
    }
}

impl StageSum {
    fn finding(&self, trials: u32) -> StageFinding {
        // Durations below the resolution in every trial have no mean.
        let is_resolved = self.unresolved < trials as usize;
        let [seconds, mb_per_s] = [&self.seconds, &self.rates].map(|values| {
            // A mean over only the trials that have it would be a mean of the good ones.
            if is_resolved && values.len() == trials as usize { over_trials(values) } else { None }
        });
        let without = trials as usize - self.seconds.len().min(trials as usize);
        let missing = self.missing.clone().unwrap_or_else(|| match is_resolved {
            true => format!("{without} of {trials} trials did not have it"),
            false => "under 1 ms in each trial".to_owned(),
        });
        StageFinding {
            name: self.name.clone(),
            kind: self.kind,
            missing: seconds.is_none().then_some(missing),
            seconds,
            bytes: moments::mean(&self.bytes),
            mb_per_s,
            trials: self.seconds.iter().map(|trial| (trial.block, trial.trial.mean)).collect(),
        }
    }
}

/// Seconds from the first answer until the rate is back, up to the start of the first seconds whose mean reaches it.
fn seconds_until_back(recovery: &RecoveryCounts) -> Option<f64> {
    let settled = (recovery.before.len() as f64 * (1.0 - FORMER_PART)) as usize;
    let former: Vec<f64> = recovery.before[settled..].iter().map(|done| *done as f64).collect();
    let wanted = moments::mean(&former)? * BACK_AT * BACK_SECONDS as f64;
    let mut windows = recovery.after.windows(BACK_SECONDS);
    let back = windows.position(|seconds| seconds.iter().sum::<u64>() as f64 >= wanted)?;
    Some(recovery.after_begins_us as f64 / 1e6 + back as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::recovery::CrashKind;

    fn recovery(before: &[u64], after: &[u64]) -> RecoveryCounts {
        RecoveryCounts {
            crash: CrashKind::Process,
            wal_asked: 1 << 30,
            wal_bytes: 1 << 30,
            before: before.to_vec(),
            after: after.to_vec(),
            after_begins_us: 250_000,
            answers_apart_us: 3_000,
        }
    }

    fn stage(name: &str, kind: StageKind, length_us: u64, bytes: Option<u64>) -> StageCounts {
        StageCounts { name: name.to_owned(), kind, length_us, bytes }
    }

    #[test]
    fn a_server_is_back_after_three_seconds_at_nine_tenths() {
        let before = [200, 500, 1000, 1000];
        let back = |after: &[u64]| seconds_until_back(&recovery(&before, after));
        assert_eq!(back(&[1000, 1000, 1000]), Some(0.25));
        assert_eq!(back(&[100, 980, 700, 890, 950, 900, 860]), Some(3.25), "one good second is noise");
        assert_eq!(back(&[800; 20]), None);
        assert_eq!(back(&[1000; 2]), None);
        assert_eq!(seconds_until_back(&recovery(&[], &[1, 1, 1])), None);
    }

    #[test]
    fn stages_have_a_mean_over_trials_with_interval_and_rate() {
        let mut sums = StageSums::default();
        for (trial, length_us) in [(1, 900_000), (2, 1_000_000), (3, 1_100_000)] {
            let stages = vec![
                stage("outage", StageKind::Ranked, 2 * length_us, None),
                stage("redo", StageKind::Part, length_us, Some(500_000_000)),
            ];
            sums.add(trial, &Counts { stages, ..Counts::default() });
        }
        let found = sums.findings();
        let redo = found.iter().find(|stage| stage.name == "redo").unwrap();
        let (seconds, rate) = (redo.seconds.unwrap(), redo.mb_per_s.unwrap());
        assert!((seconds.value - 0.9967).abs() < 1e-3 && seconds.low < Some(0.9) && seconds.high > Some(1.1));
        assert!((rate.value - 501.7).abs() < 0.1 && rate.trials == 3, "{rate:?}");
        assert_eq!((redo.bytes, found[0].mb_per_s), (Some(5e8), None));
        assert_eq!(sums.ranked().map(|stage| stage.name.as_str()).collect::<Vec<_>>(), ["outage"]);
    }

    #[test]
    fn a_stage_missing_in_a_trial_has_no_mean() {
        let mut sums = StageSums::default();
        let counts = |after: &[u64]| Counts { recovery: Some(recovery(&[10, 10], after)), ..Counts::default() };
        sums.add(1, &counts(&[10; 5]));
        sums.add(2, &counts(&[1; 5]));
        let found = &sums.findings()[0];
        assert_eq!((found.seconds, found.missing.as_deref()), (None, Some("not within 5 s in trial 2")));
        assert_eq!(found.trials, [(1, 0.25)]);
    }

    #[test]
    fn stages_below_the_log_resolution_count_as_half_a_millisecond() {
        let mut sums = StageSums::default();
        let took = |us| Counts { stages: vec![stage("redo", StageKind::Part, us, None)], ..Counts::default() };
        sums.add(1, &took(0));
        let alone = &sums.findings()[0];
        assert_eq!((alone.seconds, alone.missing.as_deref()), (None, Some("under 1 ms in each trial")));
        sums.add(2, &took(2000));
        let found = &sums.findings()[0];
        assert!((found.trials[0].1 - 0.0005).abs() < 1e-9 && found.seconds.is_some());
    }
}
