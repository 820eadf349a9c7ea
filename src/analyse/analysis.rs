//! The analysis of one run: takes its trials one at a time, then draws every conclusion.

use super::case::sums::CaseSums;
use super::findings::groups::place_of;
use super::findings::remark::{Remark, Weight};
use super::findings::{
    self, CaseFinding, Durability, Findings, FullFinding, MachineFinding, NotRun, Ranking, RunSummary,
};
use super::run::blocks::RunBlocks;
use super::run::disturbed::Disturbed;
use super::run::not_run::NotRunSums;
use super::run::{
    ageing, decided, drives, effects, flush_share, full, in_memory, machines, percentile_ratios, power_cuts, profiled,
    ranking, spread, turns,
};
use super::trial::input::{RunInput, TrialInput};
use super::trial::series::Buckets;
use super::words::{cautions, headline, merged, window};
use crate::record::case::TrialKey;
use crate::record::facts::HostFacts;
use crate::record::trial::{Outcome, TrialRecord};
use std::collections::BTreeMap;

/// Maximum number of trials whose time series are kept for charts: some 24 numbers of each of 45 series. Those of
/// 10 000 trials took 1.7 GB and made a page of 181 MB.
pub const MOST_CHARTED: usize = 500;

/// Remark that not all trials have charts, if so.
fn charted(planned: u32) -> Option<Remark> {
    let words = format!("charts over time are of the first {MOST_CHARTED} of {planned} trials, figures of all");
    (planned as usize > MOST_CHARTED).then(|| Remark::plain(Weight::Missing, words))
}

/// The analysis of one run in progress.
#[derive(Debug, Clone)]
pub struct Analysis {
    pub(super) input: RunInput,
    pub(super) cases: Vec<CaseSums>,
    not_run: NotRunSums,
    full: Vec<FullFinding>,
    hosts: BTreeMap<TrialKey, HostFacts>,
    disturbed: Disturbed,
    buckets: Buckets,
}

impl Analysis {
    /// Starts the analysis of a run whose trials are still to be added.
    pub fn new(mut input: RunInput) -> Analysis {
        let mut cases: Vec<CaseSums> = input.run.cases.iter().cloned().map(CaseSums::new).collect();
        input.verdicts = power_cuts::known(std::mem::take(&mut input.verdicts), &cases);
        for case in &mut cases {
            case.verdict = power_cuts::of_case(&input.verdicts, &case.spec.id).cloned();
        }
        let buckets = Buckets::for_trials(input.run.order.len());
        let (not_run, disturbed) = (NotRunSums::default(), Disturbed::default());
        Analysis { input, cases, not_run, full: Vec::new(), hosts: BTreeMap::new(), disturbed, buckets }
    }

    /// Adds a trial set aside for another one of the same case and block.
    pub(crate) fn add_set_aside(&mut self, record: &TrialRecord) {
        self.disturbed.add_set_aside(record);
    }

    /// Adds a trial, in any order.
    pub(crate) fn add_trial(&mut self, trial: TrialInput) {
        let id = &trial.record.case.id;
        let key = TrialKey { case: id.clone(), trial: trial.record.trial };
        self.hosts.insert(key.clone(), trial.record.host.clone());
        self.disturbed.add(&trial.record);
        let known = place_of(&mut self.cases, |case| case.spec.id == *id, || CaseSums::new(trial.record.case.clone()));
        self.full.extend(full::of_trial(&trial.record));
        match &trial.record.outcome {
            Outcome::NotRun { .. } if trial.record.full.is_some() => {}
            Outcome::NotRun { step, reason, hint } => {
                self.not_run.add(&key, Some(*step), reason, hint.as_deref());
            }
            Outcome::Measured => {
                // The first blocks of all cases, so that cases can be compared.
                let before = (trial.record.trial as usize).saturating_sub(1).saturating_mul(self.input.run.cases.len());
                let buckets = Some(self.buckets).filter(|_| before.saturating_add(known) < MOST_CHARTED);
                self.cases[known].add(trial, buckets);
            }
        }
    }

    /// Draws every conclusion.
    pub fn finish(mut self) -> Findings {
        let disturbed = self.disturbed.judge(&self.input.run);
        self.add_unmeasured();
        let costs: Vec<_> = self.cases.iter().map(|case| flush_share::cost_of(case, &self.cases)).collect();
        self.cases.iter_mut().zip(costs).for_each(|(case, cost)| case.sync_cost = cost);
        let turns = turns::found(&mut self.cases, self.input.run.at_least);
        let durability: Vec<Durability> = self.cases.iter().map(CaseSums::durability).collect();
        let machines = self.machines();
        let not_run = std::mem::take(&mut self.not_run).entries();
        let blocks = RunBlocks::of(&self.input.run, self.input.pending.is_empty(), self.input.wall_us);
        let mut contests = ranking::contests(&self.cases, &durability, &self.input.run.baseline, blocks);
        let order: Vec<&str> = self.cases.iter().map(|case| case.spec.id.as_str()).collect();
        let effects = effects::found(&contests, &self.input.run.baseline, &order, blocks);
        machines::mark(&mut contests, &machines, self.input.run.blocks);
        let found = self.cases.iter().zip(&durability).map(|(case, judged)| {
            let mut of_others = machines::of_case(&case.spec.id, &contests, &machines, &self.input.run);
            of_others.extend(turns::of_case(turns.as_ref(), &case.spec.id));
            let blocks = ranking::blocks_used(&contests, &case.spec.id);
            self.finding(case, case.finding(judged.clone(), blocks.as_deref()), of_others)
        });
        let (mut found, remarks): (Vec<CaseFinding>, Vec<Vec<Remark>>) = found.unzip();
        let emulated = self.cases.iter().any(|case| case.strata.emulated);
        let mut answer = match contests.is_empty() && emulated {
            true => headline::emulated(),
            false => headline::answer(&contests, &effects, &found, &not_run),
        };
        let profiled = profiled::findings(&self.cases, &found);
        answer.notes.extend(profiled::sentence(&profiled));
        answer.notes.extend(full::sentence(&self.full));
        spread::name_machines(&mut answer, &self.input.run, machines.len());
        if let Some(whole) = &self.input.run.quick {
            answer.notes.push(window::quick_sentence(&self.cases, &self.input.run, whole));
        }
        let headline = answer.text();
        let mut rankings: Vec<Ranking> = contests.into_iter().map(|contest| contest.ranking).collect();
        decided::name_folder(&mut rankings, &self.input.folder);
        percentile_ratios::compare(&mut rankings, &self.cases, &mut found, blocks);
        ranking::one_rate(&rankings, &mut found);
        let run = self.summary(&not_run, disturbed);
        let mut of_run = cautions::of_run(&machines, &self.cases, &found, self.input.pending.is_empty());
        of_run.extend(self.input.lost_events.iter().map(|lost| Remark::plain(Weight::Wrong, lost.as_str())));
        of_run.extend(spread::remark(&self.input.run));
        of_run.extend(charted(run.trials_planned));
        of_run.extend(turns::of_run(turns.as_ref()));
        of_run.extend(self.disturbed.of_run(run.trials_planned, run.trials_disturbed));
        let cautions = merged::cautions(of_run, &self.cases, &remarks);
        Findings {
            format: findings::FORMAT,
            run,
            headline,
            answer,
            ageing: ageing::findings(&self.cases),
            drives: drives::findings(&self.cases),
            power_cuts: power_cuts::findings(&self.input.verdicts, &self.cases),
            profiled,
            machines,
            effects,
            rankings,
            turns,
            cases: found,
            trials: self.cases.into_iter().flat_map(|case| case.trials).collect(),
            set_aside: self.disturbed.set_aside,
            full: self.full,
            not_run,
            cautions,
            by_hand: Vec::new(),
        }
    }

    /// Adds the trials that are still to do, and those whose files cannot be read.
    fn add_unmeasured(&mut self) {
        let hint = match self.input.run.merged.is_empty() {
            true => &format!("pgstrata run --resume {}", self.input.folder),
            false => "resume the run that lacks it, then pgstrata merge DIR... again",
        };
        self.input.pending.iter().for_each(|key| self.not_run.add(key, None, "not yet run", Some(hint)));
        for (key, why) in &self.input.damaged {
            self.not_run.add(key, None, &format!("damaged, left out: {why}"), Some(hint));
        }
    }

    /// Completes the finding of a case, with all remarks on it; `remarks` are those about its machines and turns.
    fn finding(&self, case: &CaseSums, mut found: CaseFinding, mut remarks: Vec<Remark>) -> (CaseFinding, Vec<Remark>) {
        if let Some(strata) = &mut found.strata {
            strata.flush_share = flush_share::of(case, &self.cases);
        }
        if let Some(time) = &mut found.backend_time {
            in_memory::measured_in_memory(&self.cases, case, time);
        }
        remarks.extend(full::remark(&self.full, &case.spec.id, case.trials.len()));
        remarks.extend(cautions::of_case(&found, case, &self.input.run, self.blocks_of(&case.spec.id)));
        remarks.extend(self.disturbed.of_case(&case.spec.id));
        found.cautions = remarks.iter().map(Remark::text).collect();
        (found, remarks)
    }

    /// Blocks in which a case was due: for cases stopped by a look, those before it.
    fn blocks_of(&self, case: &str) -> u32 {
        let run = &self.input.run;
        if run.at_least.is_none() && !run.is_partial() {
            return run.blocks;
        }
        u32::try_from(run.order.iter().filter(|key| key.case == case).count()).unwrap_or(u32::MAX)
    }

    /// The machines, in the run's order.
    fn machines(&self) -> Vec<MachineFinding> {
        let order = self.input.run.order.iter();
        machines::found(order.filter_map(|key| Some((key.clone(), self.hosts.get(key)?.clone()))))
    }

    fn summary(&self, not_run: &[NotRun], disturbed_by_block: BTreeMap<u32, u32>) -> RunSummary {
        let run = &self.input.run;
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let times = self.input.wall_us.filter(|wall| *wall > 0).zip(self.input.measured_us);
        let without_figures: usize = not_run.iter().map(|entry| entry.trials.len()).sum();
        RunSummary {
            id: run.id.clone(),
            name: run.name.clone(),
            started: run.started.clone(),
            measured_by: run.tool_version.clone(),
            analysed_by: env!("CARGO_PKG_VERSION").to_owned(),
            seed: run.seed,
            blocks: run.blocks,
            blocks_held: spread::blocks_held(run),
            trials_planned: count(run.order.len()),
            trials_measured: count(self.cases.iter().map(|case| case.trials.len()).sum()),
            trials_not_run: count(without_figures.saturating_sub(self.input.damaged.len())),
            trials_damaged: count(self.input.damaged.len()),
            trials_disturbed: disturbed_by_block.values().sum(),
            disturbed_by_block,
            disks: self.disturbed.disks(),
            measured_share: times.map(|(wall, measured)| (measured as f64 / wall as f64).min(1.0)),
            plan: self.input.plan_text.clone(),
            baseline: run.baseline.clone(),
            merge: self.input.merge.clone(),
        }
    }
}
