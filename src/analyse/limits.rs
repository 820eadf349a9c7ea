//! Limits on the difference between a run's figures and a baseline's: `pgstrata check`.
//!
//! A limit passes only if the whole 95 % interval of the ratio is within it, and fails if all of it is beyond, if the
//! case was tried and has no figure, or if it gave up durability; otherwise the trials do not decide. Figures are
//! matched, refused and compared as in `compare`. Each limit is decided by its own interval: there is no correction
//! for their number, and the findings say so.

#[cfg(test)]
mod tests;

use super::compare::findings::{Comparison, FactDifference};
use super::compare::judge::{self, reason_title};
use super::compare::side::{FigureKind, Side, SideMeasure};
use super::compare::{estimate, facts, ratio};
pub use super::probe::requirements::Compliance;
use crate::analyse::findings::{Estimate, names};
use crate::record::run::RunRecord;
use serde::Serialize;
use std::collections::BTreeSet;

/// Most cases that are named as left out.
const MOST_LEFT_OUT: usize = 6;

/// Version of this document; 1 is the first.
pub const FORMAT: u32 = 1;

/// Latencies that have an interval.
const LATENCIES: [&str; 5] = ["mean", "p50", "p95", "p99", "p99.9"];

/// Allowed change of a figure relative to the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Name of the figure: `tps`, `p99`, `fdatasync`, or a measure as named by `compare`.
    pub figure: String,
    /// Allowed change as a share: -0.05 for a fall of 5 %.
    pub change: f64,
    /// True if it limits a fall, false for a rise.
    pub is_fall: bool,
}

impl Limit {
    /// Parses `tps -5 %`, `p99 +10 %`.
    ///
    /// # Errors
    /// A message for the user, if the text is not a limit.
    pub fn parse(text: &str) -> Result<Limit, String> {
        let form = "expected FIGURE and a signed percentage: 'tps -5 %' or 'p99 +10 %'";
        let (rest, _) = text.trim().rsplit_once('%').filter(|(_, rest)| rest.is_empty()).ok_or(form)?;
        let at = rest.rfind(['+', '-']).ok_or(form)?;
        let (figure, percent) = (names::of_latency(rest[..at].trim()), rest[at + 1..].trim());
        let percent: f64 = percent.parse().map_err(|_| form.to_owned())?;
        let is_fall = rest[at..].starts_with('-');
        if figure.is_empty() || !percent.is_finite() || percent < 0.0 {
            return Err(form.to_owned());
        }
        if is_fall && percent >= 100.0 {
            return Err("nothing falls by 100 % or more; a limit on a fall is below that".to_owned());
        }
        if figure == "max" {
            return Err("the maximum has no interval, so no limit on it can be decided; use p99.9".to_owned());
        }
        let share = percent / 100.0;
        Ok(Limit { figure: figure.to_owned(), change: if is_fall { -share } else { share }, is_fall })
    }

    fn words(&self) -> String {
        let sign = if self.is_fall { "-" } else { "+" };
        format!("{} {sign}{} %", self.figure, shortest(self.change.abs() * 100.0))
    }

    fn names(&self, measure: &SideMeasure) -> bool {
        match LATENCIES.contains(&self.figure.as_str()) {
            true => measure.item == "latency" && figure_name(measure) == Some(&self.figure),
            false => measure.key() == self.figure || figure_name(measure) == Some(&self.figure),
        }
    }

    fn decide(&self, comparison: &Comparison) -> Compliance {
        let edge = 1.0 + self.change;
        let ends = comparison.low.zip(comparison.high).filter(|_| !comparison.method.is_of_single_runs());
        match (ends, self.is_fall) {
            (Some((low, _)), true) if low >= edge => Compliance::Pass,
            (Some((_, high)), true) if high < edge => Compliance::Fail,
            (Some((_, high)), false) if high <= edge => Compliance::Pass,
            (Some((low, _)), false) if low > edge => Compliance::Fail,
            _ => Compliance::Undecided,
        }
    }
}

/// Rounds to the digits the user typed: 5 and not 5.000000000000004.
fn shortest(percent: f64) -> f64 {
    (percent * 1e9).round() / 1e9
}

/// Name of a figure in limits; `None` for one without an interval.
fn figure_name(measure: &SideMeasure) -> Option<&str> {
    let which = match &measure.figure {
        FigureKind::Rate | FigureKind::Counter => return Some(&measure.item),
        FigureKind::Mean => "mean",
        FigureKind::Percentile(which) => which,
    };
    LATENCIES.into_iter().find(|known| *known == which)
}

#[derive(Debug, Clone, Copy)]
pub struct CheckedRun<'a> {
    /// For example `results/x`.
    pub label: &'a str,
    pub run: &'a RunRecord,
    /// Duration, microseconds; `None` if it has not ended.
    pub wall_us: Option<u64>,
    /// Planned and measured trials.
    pub trials: (u32, u32),
    pub sides: &'a [Side],
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitFindings {
    pub format: u32,
    /// Version of pgstrata that checked.
    pub checked_by: String,
    /// Fail if any limit fails, else undecided if any is undecided.
    pub outcome: Compliance,
    pub run: String,
    pub baseline: String,
    /// Start of the run, RFC 3339, and its duration; `null` if it has not ended.
    pub started: String,
    pub took_s: Option<f64>,
    /// True if both are cases of one run, whose trials ran in common blocks.
    pub paired: bool,
    /// Run folder of the interleaved repeat of both: `--rerun-baseline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerun: Option<String>,
    pub limits: Vec<LimitFinding>,
    pub notes: Vec<String>,
    /// Facts with different values, the baseline's first: the candidate causes.
    pub facts_that_differ: Vec<FactDifference>,
}

/// One limit on one figure of one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitFinding {
    pub outcome: Compliance,
    /// Two names if each side has a single case: `ext4 against xfs`.
    pub case: String,
    /// Name in `compare`: `pgbench/tpcb-like/scale 10/clients 4/tps`.
    pub measure: String,
    /// As given by the user: `tps -5 %`.
    pub limit: String,
    pub unit: String,
    /// `None` if the run lacks the figure.
    pub value: Option<f64>,
    pub baseline: Option<f64>,
    /// Ratio less 1 with its 95 % interval; `None` if the two are not compared.
    pub change: Option<Estimate>,
    /// How the interval was computed, or why there is none.
    pub how: String,
}

/// Figures that limits name but neither run has, with the available names.
pub fn unknown(limits: &[Limit], sides: &[Side], others: &[Side]) -> Option<(String, Vec<String>)> {
    let measures = sides.iter().chain(others).flat_map(|side| &side.measures);
    let missing = limits.iter().find(|limit| !measures.clone().any(|measure| limit.names(measure)))?;
    let short = measures.filter(|it| it.more_is_better() || it.item == "latency" || it.figure == FigureKind::Counter);
    let names: BTreeSet<&str> = short.filter_map(figure_name).collect();
    Some((missing.figure.clone(), names.into_iter().map(str::to_owned).collect()))
}

/// A limit on a gain of a figure whose loss nothing limits, and the limit that was probably meant.
pub fn on_gains_alone(limits: &[Limit], sides: &[Side]) -> Option<(String, String)> {
    limits.iter().find_map(|limit| {
        let named = |measure: &&SideMeasure| limit.names(measure);
        let measure = sides.iter().flat_map(|side| &side.measures).find(named)?;
        let more_is_better = measure.more_is_better();
        let is_on_loss = |other: &Limit| other.names(measure) && other.is_fall == more_is_better;
        let meant = Limit { is_fall: more_is_better, change: limit.change.min(0.05), ..limit.clone() };
        (!limits.iter().any(is_on_loss)).then(|| (limit.words(), meant.words()))
    })
}

/// Advice if an interval includes a limit; after a rerun, `run` refers to its folder.
const MORE_BLOCKS: &str = "More blocks narrow an interval that holds a limit: pgstrata run --resume RUN --blocks N";

/// True if two sides are compared: sides of the same name or with a case in common, or the only side of each run.
pub fn are_partners(run: &[Side], side: &Side, baseline: &[Side], reference: &Side) -> bool {
    // A side's name has the axes in which those of its run differ, which may be fewer in a run of fewer cases.
    let share_a_case = || side.measures.iter().any(|one| reference.measures.iter().any(|it| one.is_of_case_of(it)));
    (run.len() == 1 && baseline.len() == 1) || side.name == reference.name || share_a_case()
}

/// Checks a run against a baseline.
pub fn check(run: CheckedRun<'_>, baseline: CheckedRun<'_>, limits: &[Limit]) -> LimitFindings {
    let (mut found, mut facts_that_differ, mut new) = (Vec::new(), Vec::new(), Vec::new());
    let mut left_out: BTreeSet<&str> = BTreeSet::new();
    let by_only = run.run.quick.as_ref().map_or(&[][..], |quick| &quick.left_out);
    for reference in baseline.sides {
        let side = run.sides.iter().find(|side| are_partners(run.sides, side, baseline.sides, reference));
        let is_left_out =
            |it: &SideMeasure| by_only.contains(&it.case) && side.is_none_or(|side| partner(side, it).is_none());
        for limit in limits {
            let named = reference.measures.iter().filter(|measure| measure.absent.is_none() && limit.names(measure));
            let (out, checked): (Vec<_>, Vec<_>) = named.partition(|measure| is_left_out(measure));
            left_out.extend(out.iter().map(|measure| measure.case.as_str()));
            found.extend(checked.into_iter().map(|it| decided(limit, side, reference, it, run.sides)));
        }
        if let Some(side) = side {
            new.extend(only_here(limits, side, reference));
            let (differing, _) = facts::differences(&[reference.clone(), side.clone()]);
            facts_that_differ
                .extend(differing.into_iter().filter(|fact| !facts_that_differ.contains(fact)).collect::<Vec<_>>());
        }
    }
    let sides = run.sides.iter();
    let unmatched =
        sides.filter(|side| !baseline.sides.iter().any(|other| are_partners(run.sides, side, baseline.sides, other)));
    new.extend(unmatched.map(|side| format!("case {}", side.name)));
    let mut notes = notes(run, baseline, &found, &new);
    notes.extend((!left_out.is_empty()).then(|| {
        let cases = names::first(left_out.iter(), MOST_LEFT_OUT, "; ", "; ");
        format!("Not checked, because `only` in the plan's [quick] leaves these cases out: {cases}")
    }));
    LimitFindings {
        format: FORMAT,
        checked_by: env!("CARGO_PKG_VERSION").to_owned(),
        outcome: of_all(&found),
        run: run.label.to_owned(),
        baseline: baseline.label.to_owned(),
        started: run.run.started.clone(),
        took_s: run.wall_us.map(|us| us as f64 / 1e6),
        paired: run.run.id == baseline.run.id,
        rerun: None,
        notes,
        limits: found,
        facts_that_differ,
    }
}

fn of_all(found: &[LimitFinding]) -> Compliance {
    let outcomes: Vec<Compliance> = found.iter().map(|one| one.outcome).collect();
    match () {
        () if outcomes.contains(&Compliance::Fail) => Compliance::Fail,
        () if outcomes.contains(&Compliance::Undecided) || found.is_empty() => Compliance::Undecided,
        () => Compliance::Pass,
    }
}

impl LimitFindings {
    /// Turns this into the result of a rerun in `folder`: a finding of `before` that is missing here becomes undecided,
    /// so that a case which now fails to run does not pass silently.
    pub fn of_rerun(mut self, folder: String, before: LimitFindings) -> LimitFindings {
        let known: BTreeSet<_> = self.limits.iter().map(LimitFinding::key).collect();
        let lost = before.limits.into_iter().filter(|one| !known.contains(&one.key())).map(|one| match one.value {
            None => one,
            Some(_) => LimitFinding {
                outcome: Compliance::Undecided,
                value: None,
                baseline: None,
                change: None,
                how: "the baseline, measured again, has no such figure".to_owned(),
                ..one
            },
        });
        self.limits.extend(lost);
        if let Some(note) = self.notes.iter_mut().find(|note| **note == MORE_BLOCKS) {
            *note = MORE_BLOCKS.replace("RUN", &folder);
        }
        LimitFindings { outcome: of_all(&self.limits), rerun: Some(folder), ..self }
    }
}

impl LimitFinding {
    fn key(&self) -> [String; 3] {
        [&self.case, &self.measure, &self.limit].map(String::clone)
    }
}

/// Applies a limit to a figure that it names.
fn decided(limit: &Limit, side: Option<&Side>, reference: &Side, expected: &SideMeasure, all: &[Side]) -> LimitFinding {
    let case = match side {
        Some(side) if side.name != reference.name => format!("{} against {}", side.name, reference.name),
        _ => reference.name.clone(),
    };
    let first = all.first().map_or("CASE", |side| side.name.as_str());
    let how = format!("the run has no such case; name one on each side, as in RUN:{first}; it has ");
    let all = names::first(all.iter().map(|side| &side.name), 3, "; ", "; ");
    let finding = LimitFinding {
        outcome: Compliance::Undecided,
        case,
        measure: expected.key(),
        limit: limit.words(),
        unit: expected.unit.clone(),
        value: None,
        baseline: Some(expected.value),
        change: None,
        how: how + &all,
    };
    let Some(side) = side else { return finding };
    let finding = of_measure(finding, limit, side, expected);
    // The figures of a case that fails are those of what it managed.
    match side.failed.clone().filter(|_| reference.failed.is_none() || finding.value.is_none()) {
        Some(how) => LimitFinding { outcome: Compliance::Fail, how, ..finding },
        None => finding,
    }
}

/// `finding` with what the figure of a side says of it.
fn of_measure(finding: LimitFinding, limit: &Limit, side: &Side, expected: &SideMeasure) -> LimitFinding {
    let Some(measure) = partner(side, expected) else {
        let like = (expected.subject(), &expected.figure);
        let alike = side.measures.iter().filter(|it| (it.subject(), &it.figure) == like);
        let nearest = alike.min_by_key(|measure| judge::differing_conditions(measure, expected).len());
        let nearest = nearest.map_or_else(String::new, |measure| format!("; the nearest is {}", measure.key()));
        return LimitFinding { how: format!("the run has no such figure{nearest}"), ..finding };
    };
    let finding = LimitFinding { value: Some(measure.value), ..finding };
    if let Some(objection) = judge::objection(measure, expected) {
        let (run, baseline) = objection.values;
        return match judge::gave_up(measure, expected) {
            Some(how) => LimitFinding { outcome: Compliance::Fail, how, ..finding },
            None => {
                let how = format!("not compared: {}: {run}; baseline: {baseline}", reason_title(objection.reason));
                LimitFinding { how, ..finding }
            }
        };
    }
    let Some(comparison) = ratio::compare(measure, expected) else {
        return LimitFinding { how: "not compared: no operations were done".to_owned(), ..finding };
    };
    let trials = estimate(measure).trials.min(estimate(expected).trials);
    let ends = comparison.low.zip(comparison.high).map(|(low, high)| (low - 1.0, high - 1.0));
    let outcome = limit.decide(&comparison);
    let single = outcome == Compliance::Undecided && comparison.method.is_of_single_runs() && ends.is_some();
    let single = if single { ": single runs decide no limit" } else { "" };
    let change = Some(Estimate { trials, ..Estimate::of(comparison.ratio - 1.0, ends, 0) });
    LimitFinding { outcome, change, how: comparison.how + single, ..finding }
}

/// The figure of the same name that a side has.
fn partner<'s>(side: &'s Side, measure: &SideMeasure) -> Option<&'s SideMeasure> {
    judge::same_in(side, measure).filter(|other| other.absent.is_none())
}

/// Figures that a limit names and only the run has.
fn only_here(limits: &[Limit], side: &Side, reference: &Side) -> Vec<String> {
    let named = side.measures.iter().filter(|measure| limits.iter().any(|limit| limit.names(measure)));
    let new = named.filter(|measure| partner(reference, measure).is_none());
    new.map(|measure| format!("{} of {}", measure.key(), side.name)).collect()
}

fn notes(run: CheckedRun<'_>, baseline: CheckedRun<'_>, found: &[LimitFinding], new: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    if run.run.id != baseline.run.id {
        notes.push(format!(
            "The runs began at {} (baseline) and {}; their trials are not paired, so whatever changed on the machine \
             between them counts as a change. Two variants in one plan are paired: check RUN:NEW --against RUN:OLD",
            baseline.run.started, run.run.started
        ));
    }
    for (what, one) in [("run", run), ("baseline", baseline)] {
        let (planned, measured) = one.trials;
        notes.extend((measured < planned).then(|| format!("The {what} has {measured} of {planned} trials")));
    }
    let new = new.join("; ");
    notes.extend((!new.is_empty()).then(|| format!("Not checked, because the baseline has no such figure: {new}")));
    if found.iter().filter(|one| one.change.is_some()).count() > 1 {
        let words = "Each limit is decided by its own 95 % interval; the more limits and cases, the more often one fails by \
                     chance";
        notes.push(words.to_owned());
    }
    let mut undecided = found.iter().filter(|one| one.outcome == Compliance::Undecided);
    if undecided.any(|one| one.change.is_some_and(|change| change.low.is_some())) {
        notes.push(MORE_BLOCKS.to_owned());
    }
    notes
}
