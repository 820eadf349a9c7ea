//! A look at a run after a whole block: decides pairs, and which cases need further trials.
//!
//! Each case is compared in the first of its rankings with the cases of its durability class, as it will be ranked. The
//! rule is that of [`crate::stats::sequence`]; the report makes the same decisions from the same trials.

use crate::analyse::analysis::Analysis;
use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::Durability;
use crate::analyse::load;
use crate::analyse::run::blocks::RunBlocks;
use crate::analyse::run::decided::Decided;
use crate::analyse::run::ranking::{Contest, contests};
use crate::analyse::run::turns;
use crate::error::Result;
use crate::record::event::{CaseStopped, PairDecided, PairRelation};
use crate::stats::sequence::Relation;
use std::path::Path;

/// Result of a look.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockLook {
    /// Pairs decided at this block.
    pub decided: Vec<PairDecided>,
    /// Ids of the cases that need further trials.
    pub needed: Vec<String>,
    /// The other cases, with the reason.
    pub stopped: Vec<CaseStopped>,
}

/// Looks at the run in `folder` after `block`, its last whole block.
///
/// # Errors
/// If the folder is damaged.
pub fn look(folder: &Path, block: u32) -> Result<BlockLook> {
    Ok(load::analysis(folder)?.look(block))
}

impl Analysis {
    pub(super) fn look(mut self, block: u32) -> BlockLook {
        // Ratios are without what turns bore, as in the report.
        turns::found(&mut self.cases, self.input.run.at_least);
        let run = &self.input.run;
        let durability: Vec<Durability> = self.cases.iter().map(CaseSums::durability).collect();
        let contests = contests(&self.cases, &durability, &run.baseline, RunBlocks::of(run, false, None));
        let mut found = BlockLook { decided: Vec::new(), needed: Vec::new(), stopped: Vec::new() };
        for case in &run.cases {
            let first = contests.iter().find(|contest| contest.entry(&case.id).is_some());
            let decided = first.and_then(|contest| contest.decided(&case.id, &case.id));
            match why_stopped(&case.id, decided) {
                Some(reason) => found.stopped.push(CaseStopped { case: case.id.clone(), reason }),
                None => found.needed.push(case.id.clone()),
            }
        }
        found.decided = contests.iter().flat_map(|contest| decided_at(contest, block)).collect();
        found
    }
}

/// Reason that a case needs no further trials; `None` if it does.
fn why_stopped(case: &str, decided: Option<&Decided>) -> Option<String> {
    let Some(decided) = decided else { return Some("it has no figures".to_owned()) };
    let Some((sequence, cases)) = decided.sequence() else {
        return Some("no other case has its durability class".to_owned());
    };
    let place = cases.iter().position(|known| known == case)?;
    if sequence.needed(decided.best()).contains(&place) {
        return None;
    }
    let better = cases.iter().find(|other| decided.faster(other, case));
    Some(better.map_or_else(|| "all its comparisons are decided".to_owned(), |better| format!("{better} is better")))
}

fn decided_at(contest: &Contest<'_>, block: u32) -> Vec<PairDecided> {
    let mut found = Vec::new();
    for class in &contest.decided {
        let Some((sequence, cases)) = class.sequence() else { continue };
        for (one, other) in sequence.decided_at(block) {
            let relation = sequence.relation(one, other);
            let (case, other) =
                if relation == class.best() || relation == Relation::Same { (one, other) } else { (other, one) };
            found.push(PairDecided {
                ranking: contest.ranking.title.clone(),
                case: cases[case].clone(),
                other: cases[other].clone(),
                relation: if relation == Relation::Same { PairRelation::Same } else { PairRelation::Differs },
            });
        }
    }
    found
}
