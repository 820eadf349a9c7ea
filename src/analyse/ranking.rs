//! Which cases compare, how, and in which order they stand inside their durability class.

use super::case::CaseSums;
use super::findings::{
    BaselineComparison, ClassRanking, Durability, DurabilityClass, Estimate, RankRow, RankedBy, Ranking,
};
use super::measures::MeasureSums;
use super::ranked::{Ranked, ranked};
use crate::stats::ratio::{Ratio, RatioMethod, ratio};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Classes in the order in which they are shown: what is known to be safe, what may be, what is known not to be.
const SAFEST_FIRST: [DurabilityClass; 4] =
    [DurabilityClass::Flushed, DurabilityClass::Unknown, DurabilityClass::Delayed, DurabilityClass::Volatile];

/// `wal_sync_method` of PostgreSQL on Linux.
const DEFAULT_METHOD: &str = "fdatasync";

/// One ranking with what is needed to compare any two of its cases.
pub struct Contest<'a> {
    pub ranking: Ranking,
    pub entries: Vec<ContestEntry<'a>>,
    /// Whether its cases differ in their stack alone.
    pub stacks_only: bool,
}

/// One case in a ranking.
pub struct ContestEntry<'a> {
    pub case: &'a CaseSums,
    pub durability: &'a Durability,
    measure: &'a MeasureSums,
    /// What it is ranked by.
    ranked: Ranked,
    label: String,
}

impl Contest<'_> {
    /// What is ranked, of a case over that of another one, both by id.
    #[must_use]
    pub fn ratio(&self, case: &str, other: &str) -> Option<Ratio> {
        let entry = |id: &str| self.entries.iter().find(|entry| entry.case.spec.id == id);
        ratio(&entry(case)?.ranked.values, &entry(other)?.ranked.values)
    }
}

/// All rankings, the most important first: workloads with a server, then those that write, then the plan's order, and
/// the most clients before fewer (that is where stacks differ and where servers live).
#[must_use]
pub fn contests<'a>(
    cases: &'a [CaseSums],
    durability: &'a [Durability],
    baseline: &BTreeMap<String, String>,
) -> Vec<Contest<'a>> {
    let mut compared: BTreeSet<&str> =
        if baseline.is_empty() { BTreeSet::from(["stack"]) } else { baseline.keys().map(String::as_str).collect() };
    if compared.contains("stack") {
        let of_stacks = cases.iter().map(|case| &case.spec);
        compared.extend(
            of_stacks.flat_map(|spec| spec.axes.keys().filter(|axis| spec.is_of_stack(axis))).map(String::as_str),
        );
    }
    let mut groups: Vec<(Shared, Vec<ContestEntry<'a>>)> = Vec::new();
    for (case, durability) in cases.iter().zip(durability) {
        for (place, measure) in case.measures.iter().enumerate() {
            // Scripts of one mix share the main measure's time: ranking each again says nothing new.
            let is_ranked = place == 0 || measure.takes_turns;
            let figures = if is_ranked { ranked(measure, case.operation.as_ref()) } else { Vec::new() };
            for ranked in figures {
                let entry = ContestEntry { case, durability, measure, ranked, label: String::new() };
                let shared = Shared::of(&entry, &compared);
                match groups.iter_mut().find(|(known, _)| *known == shared) {
                    Some((_, entries)) => entries.push(entry),
                    None => groups.push((shared, vec![entry])),
                }
            }
        }
    }
    let mut workloads: Vec<&str> = Vec::new();
    for case in cases {
        if !workloads.contains(&case.spec.workload.name.as_str()) {
            workloads.push(&case.spec.workload.name);
        }
    }
    groups.sort_by_key(|(shared, entries)| {
        let spec = entries.first().map(|entry| &entry.case.spec);
        let without_server = spec.is_none_or(|spec| spec.postgres.is_none());
        let reads = entries.iter().all(|entry| entry.case.strata.read_only() == Some(true));
        let workload = workloads.iter().position(|name| *name == shared.workload);
        // Of the sync methods, the one that PostgreSQL on Linux uses by default.
        let other_method = shared.takes_turns && shared.measure != DEFAULT_METHOD;
        // A figure that a case lacks was too bad to have: the ranking with all cases comes first.
        (without_server, reads, workload, Reverse(shared.clients()), other_method, Reverse(entries.len()))
    });
    groups.into_iter().map(|(shared, entries)| shared.contest(entries, &compared, baseline)).collect()
}

/// What all cases of a ranking have in common.
#[derive(Debug, Clone, PartialEq)]
struct Shared {
    workload: String,
    measure: String,
    takes_turns: bool,
    /// What is ranked, in words; empty for a rate.
    by: String,
    axes: BTreeMap<String, String>,
}

impl Shared {
    fn of(entry: &ContestEntry<'_>, compared: &BTreeSet<&str>) -> Shared {
        let axes = entry.case.spec.axes.iter().filter(|(axis, _)| !compared.contains(axis.as_str()));
        Shared {
            workload: entry.case.spec.workload.name.clone(),
            measure: entry.measure.name.clone(),
            takes_turns: entry.measure.takes_turns,
            by: entry.ranked.title.clone(),
            axes: axes.map(|(axis, value)| (axis.clone(), value.clone())).collect(),
        }
    }

    fn clients(&self) -> u64 {
        self.axes.get("clients").and_then(|clients| clients.parse().ok()).unwrap_or(0)
    }

    /// "tpcb, clients 16"; "sync, fdatasync".
    fn title(&self) -> String {
        let measure = self.takes_turns.then(|| self.measure.clone());
        let axes = self.axes.iter().filter(|(axis, _)| *axis != "workload");
        let axes = axes.map(|(axis, value)| format!("{axis} {value}"));
        let by = Some(self.by.clone()).filter(|by| !by.is_empty());
        [self.workload.clone()].into_iter().chain(measure).chain(axes).chain(by).collect::<Vec<_>>().join(", ")
    }

    fn contest<'a>(
        self,
        mut entries: Vec<ContestEntry<'a>>,
        compared: &BTreeSet<&str>,
        baseline: &BTreeMap<String, String>,
    ) -> Contest<'a> {
        let differing = differing(&entries, compared);
        for entry in &mut entries {
            let values = differing.iter().filter_map(|axis| entry.case.spec.axes.get(axis)).cloned();
            entry.label = values.collect::<Vec<_>>().join(", ");
            if entry.label.is_empty() {
                entry.label.clone_from(&entry.case.spec.stack.name);
            }
        }
        entries.sort_by(|a, b| a.ranked.best_first(&b.ranked));
        let is_baseline =
            |entry: &&ContestEntry<'_>| baseline.iter().all(|(axis, is)| entry.case.spec.axes.get(axis) == Some(is));
        let base = if baseline.is_empty() { None } else { entries.iter().find(is_baseline) };
        let of_class = |class: DurabilityClass| {
            let members: Vec<&ContestEntry<'_>> =
                entries.iter().filter(|entry| entry.durability.class == class).collect();
            (!members.is_empty()).then(|| ClassRanking { class, rows: rows(&members, base) })
        };
        let ranking = Ranking {
            title: self.title(),
            by: entries.first().map_or(RankedBy::Rate, |entry| entry.ranked.by),
            unit: entries.first().map_or_else(String::new, |entry| entry.ranked.unit.clone()),
            classes: SAFEST_FIRST.into_iter().filter_map(of_class).collect(),
            workload: self.workload,
            measure: self.measure,
            shared: self.axes,
        };
        Contest { ranking, entries, stacks_only: differing.iter().all(|axis| axis == "stack") }
    }
}

/// The compared axes in which the cases really differ; all of them where none does.
fn differing(entries: &[ContestEntry<'_>], compared: &BTreeSet<&str>) -> Vec<String> {
    let value = |entry: &ContestEntry<'_>, axis: &str| entry.case.spec.axes.get(axis).cloned();
    let differs = |axis: &&&str| {
        let first = entries.first().and_then(|entry| value(entry, axis));
        entries.iter().any(|entry| value(entry, axis) != first)
    };
    let mut axes: Vec<String> = compared.iter().filter(differs).map(|axis| (*axis).to_owned()).collect();
    if axes.is_empty() {
        axes = compared.iter().map(|axis| (*axis).to_owned()).collect();
    }
    // The stack first: it is what the question is about.
    axes.sort_by_key(|axis| axis != "stack");
    axes
}

/// Rows of one class, the best first. A row shares the rank of the best of its group until one can be told apart
/// from that best; this one opens the next group.
fn rows(members: &[&ContestEntry<'_>], base: Option<&ContestEntry<'_>>) -> Vec<RankRow> {
    let mut rows: Vec<RankRow> = Vec::with_capacity(members.len());
    let mut best = 0;
    for (place, entry) in members.iter().enumerate() {
        let apart = ratio(&entry.ranked.values, &members[best].ranked.values).is_some_and(|ratio| ratio.tells_apart());
        if apart {
            best = place;
        }
        let other = base.filter(|base| base.case.spec.id != entry.case.spec.id);
        rows.push(RankRow {
            rank: u32::try_from(best + 1).unwrap_or(u32::MAX),
            case: entry.case.spec.id.clone(),
            label: entry.label.clone(),
            rate: entry.ranked.figure,
            comparison: other.and_then(|base| compare(entry, base)),
            durability: entry.durability.clone(),
        });
    }
    rows
}

fn compare(entry: &ContestEntry<'_>, base: &ContestEntry<'_>) -> Option<BaselineComparison> {
    let found = ratio(&entry.ranked.values, &base.ranked.values)?;
    let trials = match found.method {
        RatioMethod::Paired { blocks } => blocks,
        RatioMethod::Unpaired { trials } | RatioMethod::BorrowedSpread { trials } => trials.0.min(trials.1),
        RatioMethod::NoInterval => entry.ranked.values.len().min(base.ranked.values.len()),
    };
    let (class, base_class) = (entry.durability.class, base.durability.class);
    let caveat = format!("not the same promise: {} against {}", class_word(class), class_word(base_class));
    Some(BaselineComparison {
        baseline: base.case.spec.id.clone(),
        ratio: Estimate {
            value: found.value,
            low: found.interval.map(|ends| ends.0),
            high: found.interval.map(|ends| ends.1),
            trials: u32::try_from(trials).unwrap_or(u32::MAX),
        },
        no_difference_seen: !found.tells_apart(),
        method: method_words(&found, entry, base),
        caveat: (class != base_class).then_some(caveat),
    })
}

fn method_words(found: &Ratio, entry: &ContestEntry<'_>, base: &ContestEntry<'_>) -> String {
    match found.method {
        RatioMethod::Paired { blocks } => format!("paired over {blocks} blocks"),
        RatioMethod::Unpaired { trials: (a, b) } => format!("from {a} and {b} trials without common blocks"),
        RatioMethod::BorrowedSpread { trials: (a, b) } => {
            format!("from {a} and {b} trials: the spread of the {} taken for both", a.max(b))
        }
        RatioMethod::NoInterval if entry.ranked.figure.value <= 0.0 || base.ranked.figure.value <= 0.0 => {
            "no interval: one of the two did nothing".to_owned()
        }
        RatioMethod::NoInterval if entry.ranked.figure.trials < 2 => "no interval: a single trial each".to_owned(),
        RatioMethod::NoInterval => "no interval: a trial did nothing".to_owned(),
    }
}

/// A class in one word.
#[must_use]
pub fn class_word(class: DurabilityClass) -> &'static str {
    match class {
        DurabilityClass::Flushed => "flushed",
        DurabilityClass::Delayed => "delayed",
        DurabilityClass::Volatile => "volatile",
        DurabilityClass::Unknown => "unknown",
    }
}
