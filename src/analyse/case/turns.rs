//! Turns of a case that was measured side by side with others.

use crate::analyse::trial::counters::growth;
use crate::analyse::trial::input::Seconds;
use crate::record::trial::TrialRecord;
use crate::stats::ratio::BlockMean;
use std::collections::BTreeMap;

/// Length of a turn below which it is remarked: with equal work one takes half a second to two.
const SHORT_US: u64 = 400_000;

/// A turn that counts.
#[derive(Debug, Clone)]
pub struct CaseTurn {
    pub block: u32,
    pub round: u32,
    /// Id of the case before it.
    pub after: Option<String>,
    /// Logarithm of its rate.
    pub log: f64,
    pub began_us: u64,
    /// Share of the CPUs that programs outside of the run took just before it; `None` if unknown.
    pub others_share: Option<f64>,
}

#[derive(Debug, Clone, Default)]
pub struct TurnSums {
    pub turns: Vec<CaseTurn>,
    /// Block and round of each turn that was made again.
    pub made_again: Vec<(u32, u32)>,
    /// Those of turns on a disturbed disk that count.
    pub off: Vec<(u32, u32)>,
    /// Trials whose turns were far shorter than asked for: their work was set by the rate of a warm-up that others slowed.
    pub short: u64,
    /// Operations that are the first of a client's in its turn, and all of them: with equal work the rate leaves the first out.
    pub firsts: (u64, u64),
    /// By block: mean effect on its turns of the cases before and of others' CPU time beside, as the logarithm of a ratio.
    pub borne: BTreeMap<u32, f64>,
    /// By device column: bytes written between the turns, and in them.
    written: BTreeMap<String, (u64, u64)>,
}

impl TurnSums {
    pub fn add(&mut self, record: &TrialRecord, seconds: &Seconds) {
        let Some(own) = &record.turns else { return };
        let block = record.trial;
        self.made_again.extend(own.turns.iter().filter(|turn| !turn.counts).map(|turn| (block, turn.round)));
        let is_async = record.commits_late();
        for turn in own.counted() {
            let first = record.operation.clients;
            self.firsts = (self.firsts.0 + first, self.firsts.1 + first + turn.operations);
        }
        let (turns, whole_us) = own.counted().fold((0, 0), |(turns, us), turn| (turns + 1, us + turn.whole_us));
        self.short += u64::from(whole_us < SHORT_US * turns);
        self.off.extend(own.counted().filter(|turn| turn.is_off == Some(true)).map(|turn| (block, turn.round)));
        self.turns.extend(own.counted().filter(|turn| turn.operations > 0 && turn.elapsed_us > 0).map(|turn| {
            let log = (turn.operations as f64 / turn.rated_us(is_async) as f64).ln();
            let others = turn.probe.as_ref().and_then(|probe| probe.others_cpu_us.zip(probe.whole_us));
            let cpus = f64::from(record.host.cpus.max(1));
            let others_share = others.map(|(used, whole)| used as f64 / whole.max(1) as f64 / cpus);
            CaseTurn { block, round: turn.round, after: turn.after.clone(), log, began_us: turn.began_us, others_share }
        }));
        for (column, between) in &own.between {
            if let Some(grown) = seconds.numbers(column).and_then(growth) {
                let (sum_between, sum) = self.written.entry(column.clone()).or_default();
                (*sum_between, *sum) = (*sum_between + between, *sum + grown);
            }
        }
    }

    /// When its turns of each block began, the first and the last.
    pub fn spans(&self) -> BTreeMap<u32, (u64, u64)> {
        let mut spans: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for turn in &self.turns {
            let (first, last) = spans.entry(turn.block).or_insert((turn.began_us, turn.began_us));
            (*first, *last) = (turn.began_us.min(*first), turn.began_us.max(*last));
        }
        spans
    }

    /// Rates without what the case's turns bore.
    pub fn without_borne(&self, rates: &[BlockMean]) -> Vec<BlockMean> {
        let mut rates = rates.to_vec();
        rates
            .iter_mut()
            .for_each(|rate| rate.trial.mean *= self.borne.get(&rate.block).map_or(1.0, |log| (-log).exp()));
        rates
    }

    /// Bytes that the stack wrote between its turns, as a share of those in them: at the device that no other stack
    /// writes to, which is the one with the smallest share.
    pub fn idle_share(&self) -> Option<f64> {
        let written = self.written.values().filter(|(_, grown)| *grown > 0);
        written.map(|(between, grown)| *between as f64 / *grown as f64).min_by(f64::total_cmp)
    }
}
