//! Disturbed trials: which were repeated, which of the two counts, whether the machine's disk is ever steady, and its course.

use crate::analyse::findings::groups::by_key;
use crate::analyse::findings::remark::{Remark, Weight};
use crate::analyse::findings::{DiskCourse, SetAside};
use crate::analyse::trial::rates::rate_of;
use crate::record::case::TrialKey;
use crate::record::disk_probe::DiskProbe;
use crate::record::facts::HostFacts;
use crate::record::run::RunRecord;
use crate::record::trial::{Outcome, TrialRecord};
use crate::stats::disturbance::{MOST_OFF, PROBES_COMPARED, against_the_last, is_off, may_repeat, most_repeats};
use crate::stats::outliers::median;
use std::collections::BTreeMap;

/// Probes of a trial or of its repeat, with their machine: another one has another disk.
#[derive(Debug, Clone)]
struct Probed {
    host: HostFacts,
    probes: Vec<DiskProbe>,
    counts: bool,
    /// True if it took turns: those are made again by the round, and no probe around it counts.
    took_turns: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Disturbed {
    /// By trial; the repeats apart.
    firsts: BTreeMap<TrialKey, Probed>,
    repeats: BTreeMap<TrialKey, Probed>,
    pub set_aside: Vec<SetAside>,
    /// Trials that count though a probe was off, with its ratio.
    off: Vec<(TrialKey, f64)>,
}

impl Disturbed {
    pub fn add(&mut self, record: &TrialRecord) {
        self.note(record, record.outcome == Outcome::Measured);
    }

    pub fn add_set_aside(&mut self, record: &TrialRecord) {
        self.note(record, false);
        let why = match &record.outcome {
            Outcome::NotRun { reason, .. } => format!("the repeat failed: {reason}"),
            Outcome::Measured => "it was disturbed".to_owned(),
        };
        let rate = record.counts.iter().flat_map(|counts| &counts.measures).find_map(rate_of);
        let (case, trial, started) = (record.case.id.clone(), record.trial, record.started.clone());
        let is_repeat = record.is_repeat;
        self.set_aside.push(SetAside { case, trial, started, is_repeat, rate, disk_against_last: None, why });
    }

    fn note(&mut self, record: &TrialRecord, counts: bool) {
        let key = TrialKey { case: record.case.id.clone(), trial: record.trial };
        // One that failed may have left the machine at work.
        let probes = if record.outcome == Outcome::Measured { record.disk_probes.clone() } else { Vec::new() };
        let of_turns = record.turns.iter().flat_map(|turns| &turns.turns).flat_map(|turn| turn.probes().cloned());
        let probes = probes.into_iter().chain(of_turns).collect();
        let took_turns = record.turns.is_some();
        let probed = Probed { host: record.host.clone(), probes, counts, took_turns };
        let of_kind = if record.is_repeat { &mut self.repeats } else { &mut self.firsts };
        of_kind.insert(key, probed);
    }

    /// Ratio of the probe of a trial, or of its repeat, that is farthest off those before it.
    fn farthest_off(&self, key: &TrialKey, is_repeat: bool, run: &RunRecord) -> Option<f64> {
        let own = if is_repeat { self.repeats.get(key)? } else { self.firsts.get(key)? };
        let before = run.before(key, is_repeat).filter_map(|earlier| self.firsts.get(earlier));
        let before = before.filter(|earlier| earlier.host.is_same_machine(&own.host));
        // As in the run, which compares trials with trials.
        let before = before.filter(|earlier| !earlier.took_turns).flat_map(|it| &it.probes);
        let first = own.probes.first().filter(|_| !own.took_turns)?;
        // A trial that was retried later comes before it in the order alone.
        let before = before.filter(|probe| probe.folder == first.folder && probe.wall_us <= first.wall_us);
        let before: Vec<f64> = before.map(DiskProbe::rate).take(PROBES_COMPARED).collect();
        let ratios = own.probes.iter().filter_map(|probe| against_the_last(probe.rate(), &before));
        ratios.max_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()))
    }

    /// Judges all trials, now that they are known. Returns how many disturbed ones count, by block.
    pub fn judge(&mut self, run: &RunRecord) -> BTreeMap<u32, u32> {
        let mut set_aside = std::mem::take(&mut self.set_aside);
        for aside in &mut set_aside {
            let key = TrialKey { case: aside.case.clone(), trial: aside.trial };
            aside.disk_against_last = self.farthest_off(&key, aside.is_repeat, run);
            if let Some(ratio) = aside.disk_against_last.filter(|_| aside.rate.is_some()) {
                aside.why = format!("disk at {ratio:.2} times its usual rate");
            }
        }
        self.set_aside = set_aside;
        let all = self.firsts.iter().map(|of| (of, false)).chain(self.repeats.iter().map(|of| (of, true)));
        let counting = all.filter(|((_, probed), _)| probed.counts);
        let ratios = counting.filter_map(|((key, _), is_repeat)| Some((key, self.farthest_off(key, is_repeat, run)?)));
        self.off = ratios.filter(|(_, ratio)| is_off(*ratio)).map(|(key, ratio)| (key.clone(), ratio)).collect();
        let mut by_block = BTreeMap::new();
        self.off.iter().for_each(|(key, _)| *by_block.entry(key.trial).or_default() += 1);
        by_block
    }

    /// The course of each disk over the run.
    pub fn disks(&self) -> Vec<DiskCourse> {
        let all = self.firsts.values().chain(self.repeats.values());
        let probes = all.flat_map(|probed| {
            let host = &probed.host.hostname;
            probed.probes.iter().map(move |probe| ((host.clone(), probe.folder.display().to_string()), probe))
        });
        let courses = by_key(probes).into_iter().filter_map(|((machine, folder), probes)| {
            let mut probes: Vec<(u64, f64)> = probes.into_iter().map(|probe| (probe.wall_us, probe.rate())).collect();
            probes.sort_by_key(|(wall_us, _)| *wall_us);
            let rates: Vec<f64> = probes.iter().map(|(_, rate)| *rate).collect();
            Some(DiskCourse {
                machine,
                folder,
                per_s_median: median(&rates)?,
                per_s_lowest: rates.iter().copied().fold(f64::INFINITY, f64::min),
                per_s_highest: rates.iter().copied().fold(0.0, f64::max),
                probes,
            })
        });
        courses.collect()
    }

    /// Remarks on one case.
    pub fn of_case(&self, case: &str) -> Vec<Remark> {
        let of_case = self.set_aside.iter().filter(|aside| aside.case == case).map(|aside| {
            let (words, which, ending) = if aside.is_repeat {
                let words = "the repeat of a disturbed trial was no better: the first counts";
                (words, "repeat set aside", "the first counts")
            } else {
                let words = "a disturbed trial was repeated: the repeat counts";
                (words, "repeated", "the repeat counts")
            };
            let own = format!("trial {}: {which} ({}); {ending}", aside.trial, aside.why);
            Remark::plain(Weight::Disturbed, words).alone(own)
        });
        let counting = self.off.iter().filter(|(key, _)| key.case == case).map(|(key, ratio)| {
            let trial = key.trial;
            let own = format!("trial {trial}, with its disk at {ratio:.2} times the usual rate, counts");
            Remark::plain(Weight::Disturbed, "the disk was off its usual rate around trials that count").alone(own)
        });
        of_case.chain(counting).collect()
    }

    /// Remark on a run with this many planned trials, of which `counting` disturbed ones count: whether repeats stopped
    /// before every disturbed trial had one.
    pub fn of_run(&self, planned: u32, counting: u32) -> Option<Remark> {
        let repeats = u32::try_from(self.set_aside.len()).unwrap_or(u32::MAX);
        let in_vain = self.set_aside.iter().filter(|aside| aside.is_repeat && aside.rate.is_some()).count();
        let in_vain = u32::try_from(in_vain).unwrap_or(u32::MAX);
        if counting == 0 || most_repeats(planned) == 0 || may_repeat(planned, repeats, in_vain) {
            return None;
        }
        let ended = match repeats < most_repeats(planned) {
            true => format!("{in_vain} of {repeats} repeats in vain"),
            false => "at most a fifth repeat".to_owned(),
        };
        let text =
            format!("disk off its usual rate by over {MOST_OFF}× around {counting} of {planned} trials; {ended}");
        Some(Remark::plain(Weight::Disturbed, text))
    }
}
