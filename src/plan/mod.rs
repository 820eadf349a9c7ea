//! A plan file to a checked, seeded, ordered list of cases.
//!
//! Knows no layer and no workload: it is handed a [`Catalogue`] of their names and option checks. Pure but for reading
//! the plan file itself.

use crate::record::case::{CaseSpec, TrialKey};
use crate::record::options::{OptionProblem, OptionSpec, Options};
use std::collections::BTreeMap;

/// Something that a plan can name.
pub struct Entry {
    /// Its name in plans.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Its options; for layers, the first may be the value of the layer's own key.
    pub options: &'static [OptionSpec],
    /// Checks what the specs cannot say.
    #[expect(clippy::type_complexity, reason = "one closure type, used once")]
    pub check: Box<dyn Fn(&Options) -> Result<(), OptionProblem> + Send + Sync>,
    /// Workloads: whether it needs a server. Layers: false.
    pub needs_server: bool,
}

/// What can be named in a plan: filled from the lists of layers and workloads by the caller.
#[derive(Default)]
pub struct Catalogue {
    /// For the key `device`.
    pub devices: Vec<Entry>,
    /// For the key `volume` (a list, bottom-up).
    pub volumes: Vec<Entry>,
    /// For the key `filesystem`: both those that need a device and those that need nothing below.
    pub filesystems: Vec<Entry>,
    /// Those of `filesystems` that need nothing below (tmpfs, directory).
    pub folders: Vec<&'static str>,
    /// For the tables `[workload.NAME]`.
    pub workloads: Vec<Entry>,
}

/// A plan that has been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// Seed of the order.
    pub seed: u64,
    /// Blocks = trials of each case.
    pub blocks: u32,
    /// Axes of the baseline: `{stack: ext4}`; empty = no comparison.
    pub baseline: BTreeMap<String, String>,
    /// The cases, in the plan's order.
    pub cases: Vec<CaseSpec>,
    /// The trials, in the order of execution.
    pub order: Vec<TrialKey>,
    /// SHA-256 of the file's bytes, hex.
    pub sha256: String,
    /// The file's text.
    pub text: String,
}
