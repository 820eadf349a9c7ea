//! Maps trials to machines. A run may be resumed on another machine or have trials in several guests; trials on
//! different machines do not form a pair, even within a block. Cases that the plan runs in different guests are
//! compared all the same: each block boots all guests, and its trials form a pair.

use crate::analyse::findings::groups::item_of;
use crate::analyse::findings::lists::numbered;
use crate::analyse::findings::remark::{Remark, Weight};
use crate::analyse::findings::{HostFacts, MachineFinding};
use crate::analyse::run::ranking::{Contest, ContestEntry};
use crate::record::case::TrialKey;
use crate::record::run::RunRecord;
use crate::units::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Groups trials by machine; both in the given order. If facts of a machine change between sessions, the first value
/// counts, except for swap in use, where the maximum does.
pub fn found(trials: impl IntoIterator<Item = (TrialKey, HostFacts)>) -> Vec<MachineFinding> {
    let mut machines: Vec<MachineFinding> = Vec::new();
    for (key, host) in trials {
        let new = || MachineFinding { host: host.clone(), trials: Vec::new() };
        let machine = item_of(&mut machines, |machine| machine.host.differences(&host).is_empty(), new);
        machine.host.swap_used_bytes = machine.host.swap_used_bytes.max(host.swap_used_bytes);
        machine.trials.push(key);
    }
    machines
}

/// Index of the machine that each trial ran on, by case and block.
pub struct MachineOfTrial<'a>(BTreeMap<(&'a str, u32), usize>);

impl<'a> MachineOfTrial<'a> {
    pub fn of(machines: &'a [MachineFinding]) -> MachineOfTrial<'a> {
        let machines = machines.iter().enumerate();
        let keys = machines
            .flat_map(|(place, machine)| machine.trials.iter().map(move |key| ((key.case.as_str(), key.trial), place)));
        MachineOfTrial(keys.collect())
    }

    /// Blocks in which two cases ran on different machines.
    pub fn apart(&self, case: &str, other: &str, blocks: u32) -> BTreeSet<u32> {
        let apart = (1..=blocks).filter(|block| {
            let both = self.0.get(&(case, *block)).zip(self.0.get(&(other, *block)));
            both.is_some_and(|(one, two)| one != two)
        });
        apart.collect()
    }
}

/// The guest in which a plan runs one of these cases, by id.
fn guest<'c>(entries: &'c [ContestEntry<'_>], case: &str) -> Option<&'c str> {
    entries.iter().find(|entry| entry.case.spec.id == case)?.case.spec.guest.as_deref()
}

/// Notes in each comparison with the baseline the blocks in which the two ran on different machines.
pub fn mark(contests: &mut [Contest<'_>], machines: &[MachineFinding], blocks: u32) {
    if machines.len() < 2 {
        return;
    }
    let places = MachineOfTrial::of(machines);
    for contest in contests {
        for row in contest.ranking.classes.iter_mut().flat_map(|class| &mut class.rows) {
            let Some(comparison) = &mut row.comparison else { continue };
            let apart = places.apart(&row.case, &comparison.baseline, blocks);
            let same_guest = guest(&contest.entries, &row.case) == guest(&contest.entries, &comparison.baseline);
            if !apart.is_empty() && same_guest {
                let own = format!("not on the same machine in {}", numbered("block", &apart));
                let caveat = comparison.caveat.take().into_iter().chain([own]);
                comparison.caveat = Some(caveat.collect::<Vec<_>>().join("; "));
            }
        }
    }
}

/// Remark on a case whose trials ran on several machines, or on other machines than those of another case.
pub fn of_case(case: &str, contests: &[Contest<'_>], machines: &[MachineFinding], run: &RunRecord) -> Vec<Remark> {
    if machines.len() < 2 {
        return Vec::new();
    }
    let mut remarks = Vec::new();
    let places = MachineOfTrial::of(machines);
    let ranked = contests.iter().filter(|contest| contest.entry(case).is_some());
    let others = ranked.flat_map(|contest| {
        let others = contest.entries.iter().map(|entry| entry.case.spec.id.as_str());
        others.filter(move |other| guest(&contest.entries, case) == guest(&contest.entries, other))
    });
    let apart: BTreeSet<u32> = others.flat_map(|other| places.apart(case, other, run.blocks)).collect();
    if !apart.is_empty() {
        let words = "cases compared ran on different machines: not paired there";
        let apart = numbered("block", &apart);
        let own = format!("in {apart} it ran on another machine than what it is compared with");
        remarks.push(Remark::plain(Weight::Incomparable, words).alone(own));
    }
    let own = machines.iter().filter_map(|machine| {
        let trials: BTreeSet<u32> = machine.trials.iter().filter(|key| key.case == case).map(|key| key.trial).collect();
        (!trials.is_empty()).then(|| format!("{} ({})", short(&machine.host), numbered("block", &trials)))
    });
    let own: Vec<String> = own.collect();
    // The blocks of a merged run are spread over machines on purpose.
    if own.len() > 1 && run.merged.is_empty() {
        let own = format!("its trials ran on different machines: {}", own.join("; "));
        remarks.push(Remark::plain(Weight::Unlike, "trials of a case ran on different machines").alone(own));
    }
    remarks
}

fn short(host: &HostFacts) -> String {
    format!("{}, Linux {}, {} CPUs, {}", host.hostname, host.kernel, host.cpus, Bytes(host.memory_bytes))
}
