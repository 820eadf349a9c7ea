//! `run.json`: tool, seed, cases and their order. The machine is a fact of each trial.

use super::case::{CaseSpec, TrialKey};
use super::event::Event;
use super::verdict::DurabilityCheck;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Version of the run folder. 1: the first.
pub const FORMAT: u32 = 1;

/// Blocks added to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    /// Time, RFC 3339.
    pub at: String,
    /// Blocks before.
    pub from: u32,
    /// Blocks afterwards.
    pub to: u32,
}

/// Share of a plan's blocks that a run has when they are spread over machines: number `part` of `of` shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Number of this share, from 1.
    pub part: u32,
    /// Number of shares.
    pub of: u32,
}

impl Share {
    /// True if a block belongs to the share. Blocks are dealt in turn: share 1 of 3 has blocks 1, 4, 7 ...
    pub fn has(self, block: u32) -> bool {
        self.of > 0 && block > 0 && (block - 1) % self.of + 1 == self.part
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

/// A run whose trials went into a merged run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedRun {
    /// Id, which its trials keep.
    pub id: String,
    /// Its share of the blocks; `None` for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// Host names of the machines on which its trials ran.
    pub hosts: Vec<String>,
    /// Blocks taken from it.
    pub blocks: Vec<u32>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that wrote it.
    pub tool_version: String,
    /// Unique id: eight hex digits. Part of the name of everything that the run creates.
    pub id: String,
    /// The plan's name.
    pub name: String,
    /// SHA-256 of the plan's bytes; a resumed run must have the same.
    pub plan_sha256: String,
    /// Seed of the order.
    pub seed: u64,
    /// Number of blocks = trials of a case; the maximum if blocks are adaptive.
    pub blocks: u32,
    /// Adaptive blocks: trials of each case before the first look. `None`: a fixed number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<u32>,
    /// Cases within so much of each other count as the same, per cent.
    #[serde(default = "default_precision")]
    pub precision_percent: u32,
    /// Extensions of the run after its plan, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extended: Vec<Extension>,
    /// Its share, if the plan's blocks are spread over machines. `None`: all blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// For a run made by `pgstrata merge`: the runs that its trials come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<MergedRun>,
    /// Axis values of the baseline cases: `{stack: ext4}`. Empty = no comparison.
    pub baseline: BTreeMap<String, String>,
    /// The plan that a quick run (`--quick`, with short windows) is a part of. `None`: a whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick: Option<QuickOf>,
    /// Cases that stand at once and are measured in turns; the others in trials, one after another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<String>,
    /// Method to determine the cost of a power cut; `None`: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<DurabilityCheck>,
    /// Start, RFC 3339.
    pub started: String,
    /// The cases.
    pub cases: Vec<CaseSpec>,
    /// Trials in order of execution: the own ones of a share; for a merged run, those of its blocks.
    pub order: Vec<TrialKey>,
}

/// Precision of runs that do not name theirs, per cent.
fn default_precision() -> u32 {
    5
}

/// The plan behind a quick run: its size, the layer options that were replaced, and the cases that were left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuickOf {
    /// Cases of the plan.
    pub cases: u32,
    /// Blocks of the plan; the maximum if adaptive.
    pub blocks: u32,
    /// Layer options set for the quick run: `loop` -> `2GiB`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// True if the plan asks for trials, one after another.
    #[serde(default)]
    pub trials: bool,
    /// Ids of the plan's cases that `only` leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl RunRecord {
    /// Blocks in its order: all, unless it is a share or was merged.
    pub fn blocks_held(&self) -> BTreeSet<u32> {
        self.order.iter().map(|key| key.trial).collect()
    }

    /// True if its order lacks some of the plan's blocks.
    pub fn is_partial(&self) -> bool {
        self.share.is_some() || !self.merged.is_empty()
    }

    /// True if it runs this plan: same text, seed and quick mode.
    pub fn is_of_plan(&self, sha256: &str, seed: u64, quick: bool) -> bool {
        (self.plan_sha256.as_str(), self.seed, self.quick.is_some()) == (sha256, seed, quick)
    }

    /// True if a trial with this run id may belong to a block: its own, or that of the run from which the block was
    /// merged.
    pub fn owns(&self, run: &str, block: u32) -> bool {
        let mut sources = self.merged.iter();
        self.merged.is_empty() && self.id == run
            || sources.any(|source| source.id == run && source.blocks.contains(&block))
    }

    /// Trials that a run should have: those of its order, except those of cases stopped by a look. The look at which a
    /// run ended before it was extended is taken again.
    pub fn due<'e>(&self, events: impl IntoIterator<Item = &'e Event>) -> Vec<TrialKey> {
        let mut looks: BTreeMap<u32, &Vec<String>> = BTreeMap::new();
        for event in events {
            match event {
                Event::Looked { block, going_on, .. } => drop(looks.insert(*block, going_on)),
                Event::RunExtended { .. } => drop(looks.pop_last()),
                _ => {}
            }
        }
        let due =
            self.order.iter().filter(|key| looks.range(..key.trial).all(|(_, going_on)| going_on.contains(&key.case)));
        due.cloned().collect()
    }

    /// Trials made before this one, or before its repeat at the end of its block, without itself; the latest first.
    pub fn before(&self, key: &TrialKey, is_repeat: bool) -> impl Iterator<Item = &TrialKey> {
        let ended = match is_repeat {
            true => self.order.iter().rposition(|other| other.trial <= key.trial).map(|last| last + 1),
            false => self.order.iter().position(|other| other == key),
        };
        self.order[..ended.unwrap_or(0)].iter().rev().filter(move |other| *other != key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_belongs_to_exactly_one_share() {
        for of in 1..=7 {
            for block in 1..=30 {
                let owners = (1..=of).filter(|part| Share { part: *part, of }.has(block)).count();
                assert_eq!(owners, 1, "block {block} of {of} shares");
            }
        }
        let blocks = |part| (1..=6).filter(|block| Share { part, of: 3 }.has(*block)).collect::<Vec<u32>>();
        assert_eq!([blocks(1), blocks(2), blocks(3)], [[1, 4], [2, 5], [3, 6]]);
    }

    #[test]
    fn a_merged_run_owns_the_blocks_taken_from_each_run() {
        let of = |merged: &[(&str, &[u32])]| -> RunRecord {
            let merged: Vec<_> = merged
                .iter()
                .map(|(id, blocks)| serde_json::json!({ "id": id, "hosts": [], "blocks": blocks }))
                .collect();
            serde_json::from_value(serde_json::json!({
                "format": 1, "tool_version": "", "id": "own", "name": "", "plan_sha256": "", "seed": 1, "blocks": 4,
                "merged": merged, "baseline": {}, "started": "", "cases": [], "order": [],
            }))
            .unwrap()
        };
        let merged = of(&[("a", &[1, 3]), ("b", &[2])]);
        assert!(merged.owns("a", 3) && merged.owns("b", 2));
        assert!(!merged.owns("a", 2) && !merged.owns("own", 1));
        assert!(of(&[]).owns("own", 4) && !of(&[]).owns("a", 4));
    }
}
