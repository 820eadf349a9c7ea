//! Blocks spread over machines: which of them a run has, and what that means for the reader.

use crate::analyse::findings::RunAnswer;
use crate::analyse::findings::lists::numbered;
use crate::analyse::findings::remark::{Remark, Weight};
use crate::record::run::RunRecord;
use crate::units::count;
use std::collections::BTreeSet;

/// Which blocks of its plan a run has, and where they come from; `None` if it has all of them itself.
pub fn blocks_held(run: &RunRecord) -> Option<String> {
    let held: Vec<String> = run.blocks_held().iter().map(u32::to_string).collect();
    let of = format!("{} of {}", held.join(", "), run.blocks);
    if let Some(share) = run.share {
        return Some(format!("{of} (share {share})"));
    }
    let hosts: BTreeSet<&str> = run.merged.iter().flat_map(|source| &source.hosts).map(String::as_str).collect();
    let from = count(run.merged.len(), "run");
    (!run.merged.is_empty()).then(|| format!("{of}, merged from {from} on {}", count(hosts.len(), "host")))
}

/// Remark on a run that has only part of the plan's blocks.
pub(crate) fn remark(run: &RunRecord) -> Option<Remark> {
    let held = run.blocks_held();
    if let Some(share) = run.share {
        let (held, blocks) = (held.len(), run.blocks);
        let what = format!("share {share} of the plan: {held} of {blocks} blocks; pgstrata merge joins the shares");
        return Some(Remark::plain(Weight::Unfinished, what));
    }
    let missing: BTreeSet<u32> = (1..=run.blocks).filter(|block| !held.contains(block)).collect();
    if run.merged.is_empty() || missing.is_empty() {
        return None;
    }
    let what = format!("no run has {} of the plan", numbered("block", &missing));
    Some(Remark::plain(Weight::Missing, what))
}

/// Names the number of machines of a merged run in its answer.
pub(crate) fn name_machines(answer: &mut RunAnswer, run: &RunRecord, machines: usize) {
    if !run.merged.is_empty() && machines > 1 {
        answer.question = answer.question.replacen("On this machine", &format!("On these {machines} machines"), 1);
    }
}
