//! Decides which cases to compare, how, and how they rank within their durability class.

use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::durability::class_word;
use crate::analyse::findings::groups::by_key;
use crate::analyse::findings::{
    BaselineComparison, CaseFinding, ClassRanking, CounterComparison, Durability, Estimate, RankRow, RankTrial,
    RankedBy, Ranking, names,
};
use crate::analyse::run::blocks::RunBlocks;
use crate::analyse::run::counters;
use crate::analyse::run::decided::Decided;
use crate::analyse::run::ranked::{Ranked, by_time, ranked};
use crate::stats::criticals::Criticals;
use crate::stats::decisions::complete_blocks;
use crate::stats::margin::Margin;
use crate::stats::ratio::{BlockMean, Ratio, RatioMethod, ratio};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Default `wal_sync_method` of PostgreSQL on Linux.
const DEFAULT_METHOD: &str = "fdatasync";

/// Seed of the simulated designs for critical values; arbitrary but fixed.
pub(super) const SEED: u64 = 17;

/// One ranking with everything needed to compare any two of its cases.
pub struct Contest<'a> {
    pub ranking: Ranking,
    /// Decisions within each class.
    pub decided: Vec<Decided>,
    pub entries: Vec<ContestEntry<'a>>,
    /// True if its cases differ only in their stack.
    pub stacks_only: bool,
}

pub struct ContestEntry<'a> {
    pub case: &'a CaseSums,
    pub durability: &'a Durability,
    pub ranked: Ranked,
    /// The values of its trials, rates without what their turns bore from the cases before.
    pub compared: Vec<BlockMean>,
    /// Those in the blocks that all cases of the ranking have; all of them if those are too few.
    used: Vec<BlockMean>,
    /// Figure of the same trials, as measured.
    figure: Estimate,
    label: String,
}

impl ContestEntry<'_> {
    fn blocks_used(&self) -> Vec<u32> {
        self.used.iter().map(|trial| trial.block).collect()
    }
}

impl Contest<'_> {
    /// Ranked figure of one case over another's, both by id.
    pub fn ratio(&self, case: &str, other: &str) -> Option<Ratio> {
        let own = ratio(&self.entry(case)?.used, &self.entry(other)?.used)?;
        Some(self.decided(case, other).map_or(own, |all| all.tested(case, other, own)))
    }

    pub fn entry(&self, case: &str) -> Option<&ContestEntry<'_>> {
        self.entries.iter().find(|entry| entry.case.spec.id == case)
    }

    /// Decisions about two cases of one class, by id.
    pub fn decided(&self, case: &str, other: &str) -> Option<&Decided> {
        self.decided.iter().find(|decided| decided.has(case) && decided.has(other))
    }

    /// True if a case was shown to be faster than another of its class, both by id.
    pub fn faster(&self, case: &str, other: &str) -> bool {
        self.decided(case, other).is_some_and(|decided| decided.faster(case, other))
    }
}

/// All rankings, most important first: workloads with a server, then those that write, then the plan's order, and more
/// clients before fewer (there stacks differ most, and servers run that way).
pub fn contests<'a>(
    cases: &'a [CaseSums],
    durability: &'a [Durability],
    baseline: &BTreeMap<String, String>,
    blocks: RunBlocks,
) -> Vec<Contest<'a>> {
    let mut compared: BTreeSet<&str> =
        if baseline.is_empty() { BTreeSet::from(["stack"]) } else { baseline.keys().map(String::as_str).collect() };
    if compared.contains("stack") {
        let axes = cases.iter().flat_map(|case| case.spec.axes.keys().filter(|axis| case.spec.is_of_stack(axis)));
        compared.extend(axes.map(String::as_str));
    }
    let mut entries: Vec<(RankingKey, ContestEntry<'a>)> = Vec::new();
    for (case, durability) in cases.iter().zip(durability) {
        // An emulated processor is so slow that it hides the storage.
        if case.strata.emulated {
            continue;
        }
        // One-off work is ranked by its time.
        let stages: Vec<_> = case.stages.ranked().collect();
        let of_stages = stages.iter().filter_map(|stage| Some((&stage.name, true, by_time(stage)?)));
        // Scripts of one mix share the main measure's time, so ranking each of them adds nothing.
        let measures = case.measures.iter().enumerate().filter(|(place, of)| *place == 0 || of.is_sliced);
        let of_measures = measures.filter(|_| stages.is_empty()).flat_map(|(_, of)| {
            ranked(of, case.operation.as_ref()).into_iter().map(|ranked| (&of.found.name, of.is_sliced, ranked))
        });
        for (measure, is_sliced, ranked) in of_stages.chain(of_measures) {
            let values = match ranked.by {
                RankedBy::Rate => case.turns.without_borne(&ranked.values),
                _ => ranked.values.clone(),
            };
            let (used, figure, label) = (values.clone(), ranked.figure, String::new());
            let mut axes = case.spec.axes.clone();
            axes.retain(|axis, _| !compared.contains(axis.as_str()));
            let (workload, by) = (case.spec.workload.name.clone(), ranked.title.clone());
            let key = RankingKey { workload, measure: measure.clone(), is_sliced, by, axes };
            entries.push((key, ContestEntry { case, durability, ranked, compared: values, used, figure, label }));
        }
    }
    let mut groups = by_key(entries);
    groups.sort_by_key(|(shared, entries)| {
        let spec = entries.first().map(|entry| &entry.case.spec);
        let without_server = spec.is_none_or(|spec| spec.postgres.is_none());
        let reads = entries.iter().all(|entry| entry.case.strata.read_only() == Some(true));
        let workload = cases.iter().position(|case| case.spec.workload.name == shared.workload);
        // Among the sync methods, PostgreSQL's default on Linux comes first.
        let other_method = shared.is_sliced && shared.measure != DEFAULT_METHOD;
        // A case lacks a figure because it was too bad to measure, so the ranking with all cases comes first.
        (without_server, reads, workload, Reverse(shared.clients()), other_method, Reverse(entries.len()))
    });
    let mut criticals = Criticals::seeded(SEED);
    let contests = groups.into_iter();
    contests.map(|(shared, entries)| shared.contest(entries, &compared, baseline, blocks, &mut criticals)).collect()
}

/// Common properties of all cases in a ranking.
#[derive(Debug, Clone, PartialEq)]
struct RankingKey {
    workload: String,
    /// Name of the measure or stage.
    measure: String,
    /// True if a trial has several such measures, each ranked on its own.
    is_sliced: bool,
    /// Ranked figure in words; empty for a rate.
    by: String,
    axes: BTreeMap<String, String>,
}

impl RankingKey {
    fn clients(&self) -> u64 {
        self.axes.get("clients").and_then(|clients| clients.parse().ok()).unwrap_or(0)
    }

    /// "tpcb, clients=16"; "sync, fdatasync".
    fn title(&self) -> String {
        let measure = self.is_sliced.then(|| self.measure.clone());
        let axes = self.axes.iter().filter(|(axis, _)| *axis != "workload");
        let axes = axes.map(|(axis, value)| names::of_axis(axis, value));
        let by = Some(self.by.clone()).filter(|by| !by.is_empty());
        [self.workload.clone()].into_iter().chain(measure).chain(axes).chain(by).collect::<Vec<_>>().join(", ")
    }

    fn contest<'a>(
        self,
        mut entries: Vec<ContestEntry<'a>>,
        compared: &BTreeSet<&str>,
        baseline: &BTreeMap<String, String>,
        blocks: RunBlocks,
        criticals: &mut Criticals,
    ) -> Contest<'a> {
        let differing = differing(&entries, compared);
        // After a look some cases have fewer blocks than others, which is no reason to omit trials.
        if blocks.rule.is_none() {
            keep_complete_blocks(&mut entries);
        }
        for entry in &mut entries {
            entry.label = names::of_axes(&entry.case.spec.axes, &differing);
            if entry.label.is_empty() {
                entry.label.clone_from(&entry.case.spec.stack.name);
            }
        }
        let by = entries.first().map_or(RankedBy::Rate, |entry| entry.ranked.by);
        entries.sort_by(|a, b| by.best_first(a.figure.value, b.figure.value));
        let mut candidates = entries.iter().filter(|_| !baseline.is_empty());
        let base =
            candidates.find(|entry| baseline.iter().all(|(axis, is)| entry.case.spec.axes.get(axis) == Some(is)));
        // Safest first, with the class a *may tear* case would have otherwise.
        let class_of = |entry: &ContestEntry<'_>| (entry.durability.class, entry.durability.otherwise);
        let kinds: BTreeSet<_> = entries.iter().map(class_of).collect();
        let (mut classes, mut decided) = (Vec::new(), Vec::new());
        for (class, otherwise) in kinds {
            let mut members: Vec<&ContestEntry<'_>> = entries.iter().collect();
            members.retain(|entry| class_of(entry) == (class, otherwise));
            let cases = members.iter().map(|entry| (entry.case.spec.id.clone(), entry.used.clone()));
            let of_class = Decided::of(cases, by, blocks, criticals);
            let rows = rows(&members, base, &of_class);
            classes.push(ClassRanking { class, decision: of_class.decision(&rows), rows });
            decided.push(of_class);
        }
        let counters = match by {
            RankedBy::Rate | RankedBy::Latency if !self.is_sliced => {
                counters_of(&entries, base, &classes, blocks, criticals)
            }
            _ => Vec::new(),
        };
        let ranking = Ranking {
            title: self.title(),
            counters,
            by,
            unit: entries.first().map_or_else(String::new, |entry| entry.ranked.unit.clone()),
            classes,
            workload: self.workload,
            measure: self.measure,
            shared: self.axes,
        };
        Contest { ranking, decided, entries, stacks_only: differing.iter().all(|axis| axis == "stack") }
    }
}

/// Counters per operation relative to the baseline or, without one, the best case of the safest class.
fn counters_of(
    entries: &[ContestEntry<'_>],
    base: Option<&ContestEntry<'_>>,
    classes: &[ClassRanking],
    blocks: RunBlocks,
    criticals: &mut Criticals,
) -> Vec<CounterComparison> {
    let best = classes.first().and_then(|class| class.rows.first()).map(|row| row.case.as_str());
    let reference = base.map(|base| base.case.spec.id.as_str()).or(best);
    let cases = entries.iter().map(|entry| {
        let work = entry.case.work.within(Some(&entry.blocks_used()));
        (entry.case.spec.id.as_str(), entry.label.as_str(), work)
    });
    let cases: Vec<_> = cases.collect();
    reference.map_or_else(Vec::new, |reference| counters::compared(&cases, reference, blocks, criticals))
}

/// Compared axes in which the cases actually differ; all compared axes if there are none.
fn differing(entries: &[ContestEntry<'_>], compared: &BTreeSet<&str>) -> Vec<String> {
    let differing = compared.iter().filter(|axis| {
        let mut values = entries.iter().map(|entry| entry.case.spec.axes.get(**axis));
        let first = values.next();
        values.any(|value| Some(value) != first)
    });
    let mut axes: Vec<String> = differing.map(|axis| (*axis).to_owned()).collect();
    if axes.is_empty() {
        axes = compared.iter().map(|axis| (*axis).to_owned()).collect();
    }
    // The stack first, since the question is about it.
    axes.sort_by_key(|axis| axis != "stack");
    axes
}

/// Drops trials whose block another case lacks, so that figures, ratios and ranks use the same trials; if too few
/// blocks would be left, each case keeps its own.
fn keep_complete_blocks(entries: &mut [ContestEntry<'_>]) {
    let all: Vec<Vec<BlockMean>> = entries.iter().map(|entry| entry.used.clone()).collect();
    let Some(blocks) = complete_blocks(&all) else { return };
    for entry in entries {
        entry.used.retain(|trial| blocks.contains(&trial.block));
        let mut measured = entry.ranked.values.clone();
        measured.retain(|trial| blocks.contains(&trial.block));
        entry.figure = entry.ranked.figure_of(&measured).unwrap_or(entry.figure);
    }
}

/// Blocks of the trials by which a case is compared; `None` if it is in no ranking.
pub fn blocks_used(contests: &[Contest<'_>], case: &str) -> Option<Vec<u32>> {
    contests.iter().find_map(|contest| contest.entry(case)).map(ContestEntry::blocks_used)
}

/// Sets the rate of each ranked case to that of the trials its ranking uses.
pub fn one_rate(rankings: &[Ranking], cases: &mut [CaseFinding]) {
    for ranking in rankings.iter().filter(|ranking| ranking.by == RankedBy::Rate) {
        for row in ranking.rows() {
            let of_case = cases.iter_mut().filter(|case| case.id == row.case).flat_map(|case| &mut case.measures);
            of_case.filter(|measure| measure.name == ranking.measure).for_each(|found| found.rate = Some(row.rate));
        }
    }
}

/// Rows of one class, best first: by rank, then by figure. After looks, the figures of two cases may use other blocks
/// than their decision.
fn rows(members: &[&ContestEntry<'_>], base: Option<&ContestEntry<'_>>, decided: &Decided) -> Vec<RankRow> {
    let rows = members.iter().map(|entry| {
        let case = &entry.case.spec.id;
        let other = base.filter(|base| base.case.spec.id != *case);
        let trials = entry.ranked.values.iter().map(|of| RankTrial {
            trial: of.block,
            rate: of.trial.mean,
            used: entry.used.iter().any(|used| used.block == of.block),
        });
        RankRow {
            rank: u32::try_from(decided.rank(case)).unwrap_or(u32::MAX),
            case: case.clone(),
            label: entry.label.clone(),
            rate: entry.figure,
            trials: trials.collect(),
            latency_us_p99: None,
            comparison: other.and_then(|base| compare(entry, base, decided)),
            durability: entry.durability.clone(),
            verdict: entry.case.verdict.clone(),
        }
    });
    let mut rows: Vec<RankRow> = rows.collect();
    rows.sort_by_key(|row| row.rank);
    rows
}

fn compare(entry: &ContestEntry<'_>, base: &ContestEntry<'_>, decided: &Decided) -> Option<BaselineComparison> {
    let (id, base_id) = (&entry.case.spec.id, &base.case.spec.id);
    let (found, outcome) = decided.compared(id, base_id, ratio(&entry.used, &base.used)?);
    let trials = match found.method {
        RatioMethod::Paired { blocks } => blocks,
        RatioMethod::Unpaired { trials } => trials.0.min(trials.1),
        RatioMethod::NoInterval => entry.used.len().min(base.used.len()),
    };
    let (class, base_class) = (entry.durability.class, base.durability.class);
    let caveat = format!("different durability: {} vs. {}", class_word(class), class_word(base_class));
    Some(BaselineComparison {
        baseline: base_id.clone(),
        ratio: Estimate::of_ratio(&found, trials),
        outcome,
        detectable_ratio: found.margin.and_then(Margin::detectable),
        method: method_words(&found, entry, base),
        caveat: (class != base_class).then_some(caveat),
    })
}

fn method_words(found: &Ratio, entry: &ContestEntry<'_>, base: &ContestEntry<'_>) -> String {
    match found.method {
        RatioMethod::Paired { blocks } => format!("paired over {blocks} blocks"),
        RatioMethod::Unpaired { trials: (a, b) } => format!("from {a} and {b} trials without common blocks"),
        RatioMethod::NoInterval if entry.ranked.figure.value <= 0.0 || base.ranked.figure.value <= 0.0 => {
            "no interval: one of the two had no operations".to_owned()
        }
        RatioMethod::NoInterval if entry.used.len().min(base.used.len()) < 2 => {
            "no interval: one of the two has a single trial".to_owned()
        }
        RatioMethod::NoInterval => "no interval: a trial had no operations".to_owned(),
    }
}
