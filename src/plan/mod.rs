//! Turns a plan file into a checked, seeded, ordered list of cases.
//!
//! Knows no layer and no workload: the caller passes a [`Catalogue`] of their names and option checks. Pure except for
//! reading the plan file. All mistakes of a plan are reported at once, each at its line ([`Problems`]).
//!
//! Pipeline: text -> `tree` (spanned values) -> `machine`, `stacks`, `postgres`, `workloads` (one table each, checked
//! against the catalogue) -> `matrix` (crossed) -> `select` (`[[exclude]]`, baseline) -> `ids` -> `order`.

mod blocks;
mod build;
pub(crate) mod drawing;
mod example;
pub(crate) mod forecast;
mod guest;
mod ids;
pub(crate) mod joined;
mod limits;
mod machine;
mod matrix;
mod names;
mod options;
mod order;
pub(crate) mod pointed;
mod postgres;
mod power_cut_check;
mod problem;
mod quick;
mod schema;
mod select;
pub(crate) mod shipped;
mod stacks;
mod tree;
mod values;
mod workloads;

#[cfg(test)]
mod tests;

pub use example::{SHORT_EXAMPLE, example};
pub(crate) use order::round;
pub(crate) use problem::did_you_mean;
pub use problem::{Paint, Problems};
pub use quick::QuickPart;
pub use schema::schema;
pub use values::describe as describe_kind;

use crate::error::{Context, Error, Result};
use crate::host::files;
use crate::plan::limits::Key;
use crate::record::case::{CaseSpec, TrialKey};
use crate::record::options::{OptionProblem, OptionSpec, Options};
use crate::record::run::{QuickOf, Share};
use crate::record::stack::{BaseKind, Take};
use crate::record::verdict::DurabilityCheck;
use problem::{Problem, clean, refuse_unknown};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tree::{Node, Pair, Toml, get};

/// Keys of a plan.
const KEYS: [&str; 13] = [
    "name",
    "seed",
    "blocks",
    "precision",
    "baseline",
    guest::GUEST,
    power_cut_check::KEY,
    machine::MACHINE,
    "stack",
    "postgres",
    "workload",
    "exclude",
    "quick",
];

/// Default seed.
const DEFAULT_SEED: u64 = 1;

/// Default number of blocks. Three leave two degrees of freedom to a ratio, whose interval is then nearly twice as wide
/// as with five; `docs/adr/0017-ranks-are-decided-together.md`.
const DEFAULT_BLOCKS: u32 = 5;

/// Default precision, and that of quick runs, per cent.
const PRECISION_PERCENT: u32 = 5;
const QUICK_PRECISION_PERCENT: u32 = 10;

const MAX_BLOCKS: u32 = 10_000;

/// Maximum trials of a run: with half a minute each, a month.
const MAX_TRIALS: usize = 100_000;

/// Size limit of a plan file, bytes.
const MAX_FILE: u64 = 1 << 20;

/// See [`CatalogueEntry::resolve`].
pub type Resolve = Box<dyn Fn(&mut Options, &Path) + Send + Sync>;

/// See [`CatalogueEntry::check`].
pub type Check = Box<dyn Fn(&Options) -> Result<(), OptionProblem> + Send + Sync>;

/// See [`CatalogueEntry::bases`].
pub type BaseNames = Box<dyn Fn(&Options) -> Vec<String> + Send + Sync>;

/// A layer, a workload, or a table of options that a plan can name.
pub struct CatalogueEntry {
    pub name: &'static str,
    pub doc: &'static str,
    /// Its options; for layers, the first may be the value of the layer's own key.
    pub options: &'static [OptionSpec],
    /// Makes values independent of the plan's folder (paths, for example): called with the options of one case and that
    /// folder, before `check`.
    pub resolve: Resolve,
    /// Checks constraints that the specs cannot express.
    pub check: Check,
    /// Layers: the inputs.
    pub takes: &'static [Take],
    /// Layers: the kind of its bases.
    pub offers: BaseKind,
    /// Layers: the names of its bases.
    pub bases: BaseNames,
    /// Workloads: true if it needs a server. Layers: false.
    pub needs_server: bool,
}

impl CatalogueEntry {
    /// An entry without inputs, checked by its specs alone.
    pub fn new(name: &'static str, doc: &'static str, options: &'static [OptionSpec]) -> CatalogueEntry {
        CatalogueEntry {
            name,
            doc,
            options,
            resolve: Box::new(|_, _| ()),
            check: Box::new(|_| Ok(())),
            takes: &[],
            offers: BaseKind::Folder,
            bases: Box::new(|_| Vec::new()),
            needs_server: false,
        }
    }

    /// The spec of one of its options.
    fn option(&self, key: &str) -> Option<&'static OptionSpec> {
        self.options.iter().find(|spec| spec.key == key)
    }
}

/// Names that a plan can use; the caller fills it from the lists of layers and workloads.
#[derive(Default)]
pub struct Catalogue {
    /// For the tables `[stack.NAME]`.
    pub layers: Vec<CatalogueEntry>,
    /// For the tables `[workload.NAME]`.
    pub workloads: Vec<CatalogueEntry>,
    /// For the table `[machine]`: its options are knobs of the kernel.
    pub machine: Option<CatalogueEntry>,
    /// For the key `age` of a stack.
    pub age: Option<CatalogueEntry>,
    /// Options of `age` that need a workload with a server.
    pub age_of_clusters: &'static [&'static str],
}

/// A plan that has been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub name: String,
    /// Seed of the order.
    pub seed: u64,
    /// Blocks = trials of each case; the maximum if blocks are adaptive.
    pub blocks: u32,
    /// Adaptive blocks: number for each case before the first look.
    pub at_least: Option<u32>,
    /// Cases within so much of each other count as the same, per cent.
    pub precision_percent: u32,
    /// Axes of the baseline: `{stack: ext4}`; empty = no comparison.
    pub baseline: BTreeMap<String, String>,
    /// Method by which a run determines the cost of a power cut; `None` if it does not.
    pub durability: Option<DurabilityCheck>,
    /// The cases, in the plan's order.
    pub cases: Vec<CaseSpec>,
    /// The trials, in the order of execution.
    pub order: Vec<TrialKey>,
    /// Part of the plan for a quick run, if the plan defines one.
    pub in_quick: Option<QuickPart>,
    /// The original plan, if this is its quick part with short windows.
    pub quick: Option<QuickOf>,
    /// Share of the blocks in `order` if they are spread over machines; `None`: all of them.
    pub share: Option<Share>,
    /// SHA-256 of the file's bytes, hex.
    pub sha256: String,
    pub text: String,
}

/// Reads and checks the plan at `path`.
///
/// # Errors
/// Of kind `User`: if the file cannot be read, or the plan has mistakes; the message shows each at its line.
pub fn read(path: &Path, catalogue: &Catalogue, paint: Paint) -> Result<Plan> {
    let reading = format!("read the plan {}", clean(&path.display().to_string()));
    let bytes = files::read_given(path, MAX_FILE + 1, || reading.clone());
    let bytes = bytes.map_err(|e| e.or_hint("name a plan file, or a shipped plan: `pgstrata plans` lists them"))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Error::user(format!("the file is larger than the limit of {MAX_FILE} bytes")).while_doing(reading));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        Error::user(format!("line {} is not UTF-8", line + 1)).while_doing(reading.clone())
    })?;
    let absolute = std::path::absolute(path).or_user(|| reading)?;
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    check(&text, folder, catalogue).map_err(|problems| problems.into_error(&text, &path.display().to_string(), paint))
}

/// Checks the text of a plan without a folder: relative paths start at `/`. `file_name` is for messages.
///
/// # Errors
/// As [`read`].
pub fn parse(text: &str, file_name: &str, catalogue: &Catalogue) -> Result<Plan> {
    check(text, Path::new("/"), catalogue).map_err(|problems| problems.into_error(text, file_name, Paint::Plain))
}

/// Checks the text of a plan; relative paths start at `folder`, which is absolute.
///
/// # Errors
/// Every mistake found. Names of stacks and axes are looked up only once all tables are free of mistakes.
pub fn check(text: &str, folder: &Path, catalogue: &Catalogue) -> Result<Plan, Problems> {
    let mut problems = Problems::default();
    assemble(text, folder, catalogue, &mut problems).filter(|_| problems.is_empty()).ok_or(problems)
}

fn assemble(text: &str, folder: &Path, catalogue: &Catalogue, problems: &mut Problems) -> Option<Plan> {
    let root = tree::parse(text, problems)?;
    refuse_unknown(root.iter().map(|(key, _)| key), &KEYS, "the plan", problems);
    let name = read_name(&root, problems);
    let seed = read_whole(&root, "seed", 0, i64::MAX, problems).map_or(DEFAULT_SEED, i64::cast_unsigned);
    let (blocks, at_least) = blocks::read(&root, problems);
    let precision_percent = blocks::precision(&root, problems).unwrap_or(PRECISION_PERCENT);
    let durability = power_cut_check::read(&root, problems);
    let machine = machine::read_machine(&root, catalogue, problems);
    let mut stacks = stacks::read_stacks(&root, catalogue, problems);
    stacks::give_queue(&mut stacks, &machine.queue, problems);
    let draft = matrix::MatrixDraft {
        guest: guest::read_guest(&root, problems),
        machine,
        stacks,
        age_of_clusters: catalogue.age_of_clusters,
        postgres: postgres::read_postgres(&root, problems),
        folder,
        workloads: workloads::read_workloads(&root, folder, catalogue, problems),
    };
    problems.is_empty().then_some(())?;
    let all = matrix::cross(&draft, problems);
    problems.is_empty().then_some(())?;
    let left = select::exclude(&root, all.clone(), problems);
    let baseline = select::baseline(&root, &all, &left, problems);
    matrix::refuse_duplicates(&left, problems);
    if left.len().saturating_mul(blocks as usize) > MAX_TRIALS {
        let message = format!("{} cases x {blocks} blocks exceed the limit of {MAX_TRIALS} trials", left.len());
        let place = get(&root, "blocks").map_or(0..0, |(_, node)| node.span.clone());
        problems.add(Problem::at(&place, message));
    }
    problems.is_empty().then_some(())?;
    let quick = quick::read_quick(&root, &left, &baseline, catalogue, problems);
    problems.is_empty().then_some(())?;
    let parts: Vec<ids::IdParts> = left.iter().map(|candidate| candidate.parts.clone()).collect();
    let ids = ids::ids(&parts);
    let in_quick = quick.map(|quick| quick.part(&left, &ids, (blocks, at_least)));
    let cases: Vec<CaseSpec> =
        left.into_iter().zip(ids).map(|(candidate, id)| CaseSpec { id, ..candidate.case }).collect();
    let order = order::of_cases(&cases, blocks, seed);
    Some(Plan {
        name,
        seed,
        blocks,
        at_least,
        precision_percent,
        baseline,
        durability,
        cases,
        order,
        in_quick,
        quick: None,
        share: None,
        sha256: files::sha256(text.as_bytes()),
        text: text.to_owned(),
    })
}

impl Plan {
    /// Assigns this guest to the cases that name none.
    pub fn run_in(&mut self, guest: &str) {
        let in_quick = self.in_quick.iter_mut().flat_map(|part| &mut part.cases);
        for case in self.cases.iter_mut().chain(in_quick).filter(|case| case.guest.is_none()) {
            case.guest = Some(guest.to_owned());
        }
    }

    /// The plan with only the cases of this guest; `None` selects those outside any guest.
    pub fn part_in(&self, guest: Option<&str>) -> Plan {
        let mut part = self.clone();
        part.cases.retain(|case| case.guest.as_deref() == guest);
        let left: BTreeSet<&str> = part.cases.iter().map(|case| case.id.as_str()).collect();
        part.order.retain(|key| left.contains(key.case.as_str()));
        part
    }

    /// Keeps only the part for a quick run; everything if the plan defines none.
    pub fn keep_quick_part(&mut self) {
        let cases = u32::try_from(self.cases.len()).unwrap_or(u32::MAX);
        let whole = QuickOf { cases, blocks: self.blocks, ..QuickOf::default() };
        self.precision_percent = QUICK_PRECISION_PERCENT.max(self.precision_percent);
        let Some(part) = self.in_quick.take() else {
            self.quick = Some(whole);
            return;
        };
        let kept: BTreeSet<&String> = part.cases.iter().map(|case| &case.id).collect();
        let left_out = self.cases.iter().map(|case| &case.id).filter(|id| !kept.contains(id)).cloned().collect();
        self.quick = Some(QuickOf { set: part.set, trials: part.trials, left_out, ..whole });
        self.order = order::of_cases(&part.cases, part.blocks, self.seed);
        (self.blocks, self.at_least, self.cases) = (part.blocks, part.at_least, part.cases);
        self.precision_percent = part.precision_percent.unwrap_or(self.precision_percent);
    }

    /// True if cases that can stand at once are measured in turns.
    pub fn is_in_turns(&self) -> bool {
        self.quick.as_ref().is_some_and(|quick| !quick.trials)
    }

    /// Keeps only the trials of one share of the blocks.
    ///
    /// # Errors
    /// If the share would have no block, or blocks are adaptive, because looks need all blocks.
    pub fn keep_share(&mut self, share: Share) -> Result<()> {
        if self.at_least.is_some() {
            return Err(Error::user("the plan's blocks are adaptive: each look needs the trials of all machines")
                .hint("to spread blocks, fix their number in the plan: blocks = 6"));
        }
        if share.part > self.blocks {
            let message = format!("share {share} has no block: the plan has {}", self.blocks);
            return Err(Error::user(message).hint(format!("use at most {} shares, or more blocks", self.blocks)));
        }
        self.order.retain(|key| share.has(key.trial));
        self.share = Some(share);
        Ok(())
    }

    /// Number of blocks in `order`; the maximum if they are adaptive.
    pub fn blocks_here(&self) -> u32 {
        let here = (1..=self.blocks).filter(|block| self.share.is_none_or(|share| share.has(*block)));
        u32::try_from(here.count()).unwrap_or(u32::MAX)
    }
}

/// The trials of a run with more blocks than planned; the order of the earlier ones is unchanged.
///
/// # Errors
/// If there would be too many.
pub fn extended_order(cases: &[CaseSpec], blocks: u32, seed: u64) -> Result<Vec<TrialKey>> {
    if blocks > MAX_BLOCKS || cases.len().saturating_mul(blocks as usize) > MAX_TRIALS {
        let message = format!("{} cases x {blocks} blocks exceed the limit of {MAX_TRIALS} trials", cases.len());
        return Err(Error::user(message));
    }
    Ok(order::of_cases(cases, blocks, seed))
}

fn read_name(root: &[Pair], problems: &mut Problems) -> String {
    let problem = match get(root, "name").map(|(_, node)| node) {
        Some(Node { value: Toml::Text(name), span }) => {
            let key = Key { text: name.clone(), span: span.clone() };
            names::check(&key, "plan", problems);
            return key.text;
        }
        Some(node) => node.must_be("`name`", "text"),
        None => Problem::at(&(0..0), "the plan has no name")
            .help("add name = \"which-filesystem\"; the run folder is named after it"),
    };
    problems.add(problem);
    String::new()
}

fn read_whole(root: &[Pair], name: &str, min: i64, max: i64, problems: &mut Problems) -> Option<i64> {
    let (_, node) = get(root, name)?;
    let refused = match node.value {
        Toml::Integer(n) if (min..=max).contains(&n) => return Some(n),
        Toml::Integer(n) if n < min => format!("`{name}` must be at least {min}, found {n}"),
        Toml::Integer(n) => format!("`{name}` must be at most {max}, found {n}"),
        _ => format!("`{name}` must be a whole number, found {}", node.noun()),
    };
    problems.add(Problem::at(&node.span, refused));
    None
}
