//! Measurements side by side: runs, probes, other people's output.
//!
//! Pure: sides in, findings out. `from_run`, `from_probe` and `from_import` make sides; `judge` decides which figures
//! may be compared, `ratio` what their spread allows to conclude. Each side is compared with the one of the same name
//! in the first argument, else with the first side of the first argument that has something comparable; sides of the
//! first argument are compared with its first side. Excluded on purpose: a winner without an interval that covers
//! variation between runs, and contradicting a publication's own claims.

pub(crate) mod answer;
mod command;
pub(crate) mod differences;
pub(crate) mod facts;
pub(crate) mod findings;
pub(crate) mod from_import;
pub(crate) mod from_probe;
pub(crate) mod from_run;
pub(crate) mod judge;
pub(crate) mod ratio;
pub(crate) mod refusals;
pub(crate) mod side;
pub mod single;
#[cfg(test)]
mod tests;

use crate::analyse::findings::durability::class_word;
use crate::analyse::findings::{DurabilityClass, Estimate};
use findings::{
    Alone, Comparison, ComparisonFindings, FORMAT, MeasureRow, Method, PairFinding, RatioOutcome, Reason, SideFinding,
};
use side::{MeasureSpread, Medium, Side, SideMeasure};
use std::collections::BTreeSet;

/// Compares all sides; the first is the reference.
pub fn compare(sides: &[Side]) -> ComparisonFindings {
    let mut pairs = Vec::new();
    let mut tried: Vec<(usize, usize)> = Vec::new();
    for place in 1..sides.len() {
        let mut chosen: Option<PairFinding> = None;
        for against in candidates(sides, place) {
            tried.push((against.min(place), against.max(place)));
            let rows = rows(&sides[place], &sides[against]);
            let compares = rows.iter().any(|row| row.comparison.is_some());
            let shows = chosen.as_ref().is_none_or(|pair| pair.rows.is_empty() && !rows.is_empty());
            if compares || shows {
                let caveat = promise_caveat(sides, place, against, &rows);
                chosen = Some(PairFinding { side: place, against, caveat, rows });
            }
            if compares {
                break;
            }
        }
        pairs.extend(chosen);
    }
    pairs.sort_by_key(|pair: &PairFinding| sides[pair.side].argument == sides[pair.against].argument);
    let (facts_that_differ, facts_not_told) = facts::differences(sides);
    let mut findings = ComparisonFindings {
        format: FORMAT,
        compared_by: env!("CARGO_PKG_VERSION").to_owned(),
        answer: String::new(),
        sides: sides.iter().enumerate().map(|(place, side)| side_finding(place, side)).collect(),
        caveats: caveats(sides, &pairs),
        pairs,
        refused: refusals::among(sides, &tried),
        alone: alone(sides),
        facts_that_differ,
        facts_not_told,
    };
    findings.answer = answer::answer(&findings);
    findings
}

/// Sides that a side may be compared with, best match first.
fn candidates(sides: &[Side], place: usize) -> Vec<usize> {
    let (side, first) = (&sides[place], sides[0].argument);
    if side.argument == first {
        let common = (0..place).find(|other| !rows(side, &sides[*other]).is_empty());
        return vec![common.unwrap_or(0)];
    }
    let of_first: Vec<usize> = (0..sides.len()).filter(|other| sides[*other].argument == first).collect();
    let same = of_first.iter().find(|other| !side.name.is_empty() && sides[**other].name == side.name).copied();
    same.map_or(of_first, |same| vec![same])
}

/// Measures of the same name on both sides, in the order of their families.
fn rows(side: &Side, reference: &Side) -> Vec<MeasureRow> {
    let measured = side.measures.iter().filter(|measure| measure.absent.is_none());
    let rows = measured.filter_map(|measure| {
        let other = judge::same_in(reference, measure).filter(|other| other.absent.is_none())?;
        let objection = judge::objection(measure, other);
        let comparison = if objection.is_none() { ratio::compare(measure, other) } else { None };
        let nothing = comparison.is_none().then_some(Reason::NothingDone);
        Some(MeasureRow {
            measure: measure.key(),
            family: measure.family.clone(),
            unit: measure.unit.clone(),
            more_is_better: measure.more_is_better(),
            value: estimate(measure),
            reference: estimate(other),
            value_runs: two_runs(measure),
            reference_runs: two_runs(other),
            comparison,
            refused: objection.map(|objection| objection.reason).or(nothing),
        })
    });
    let mut rows: Vec<MeasureRow> = rows.collect();
    rows.sort_by_key(|row| family_rank(&row.family));
    rows
}

/// Sort key of a family: PostgreSQL's own work first, then its WAL, then the rows of pg_test_fsync in their order.
fn family_rank(family: &str) -> usize {
    const ORDER: [&str; 9] = [
        "pgbench",
        "wal",
        "pg_test_fsync/one write",
        "pg_test_fsync/two writes",
        "pg_test_fsync/open_sync sizes",
        "pg_test_fsync/descriptor",
        "pg_test_fsync/not synced",
        "newer",
        "sync",
    ];
    ORDER.iter().position(|known| *known == family).unwrap_or(ORDER.len())
}

pub(crate) fn estimate(measure: &SideMeasure) -> Estimate {
    let trials = match &measure.spread {
        MeasureSpread::Trials { means, .. } => means.len(),
        MeasureSpread::Together { trials, .. } => *trials,
        MeasureSpread::None => 1,
    };
    Estimate::of(measure.value, measure.ends, trials)
}

/// Figures of two runs, because an interval from two says less than the two figures.
fn two_runs(measure: &SideMeasure) -> Vec<f64> {
    match &measure.spread {
        MeasureSpread::Trials { means, .. } if means.len() == 2 => means.iter().map(|mean| mean.trial.mean).collect(),
        _ => Vec::new(),
    }
}

fn side_finding(place: usize, side: &Side) -> SideFinding {
    let measured: Vec<&SideMeasure> = side.measures.iter().filter(|measure| measure.absent.is_none()).collect();
    let mediums: BTreeSet<bool> = measured.iter().map(|measure| measure.medium == Medium::Memory).collect();
    let known = measured.iter().map(|measure| measure.medium).find(|medium| *medium != Medium::Unknown);
    let medium = known.filter(|_| mediums.len() == 1).unwrap_or_default();
    let durabilities = side.measures.iter().filter_map(|it| it.durability.as_ref());
    SideFinding {
        mark: mark(place),
        argument: side.argument,
        label: side.label.clone(),
        origin: side.origin,
        medium,
        // The least certain durability; the first among equals.
        durability: durabilities.reduce(|one, other| if other.class > one.class { other } else { one }).cloned(),
        measures: measured.len(),
        facts: side.facts.clone(),
        caveats: side.caveats.clone(),
        left_out: side.left_out.clone(),
    }
}

/// A letter, followed by a number from the 27th side on.
fn mark(place: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(place % 26).unwrap_or(0));
    let round = place / 26;
    if round == 0 { letter.to_string() } else { format!("{letter}{round}") }
}

/// Measures whose subject no other side has.
fn alone(sides: &[Side]) -> Vec<Alone> {
    let found = sides.iter().enumerate().map(|(place, side)| {
        let others = sides.iter().enumerate().filter(|(other, _)| *other != place).flat_map(|(_, it)| &it.measures);
        let subjects: BTreeSet<(&str, &str)> = others.map(SideMeasure::subject).collect();
        let own = side.measures.iter().filter(|measure| measure.absent.is_none());
        let own = own.filter(|measure| !subjects.contains(&measure.subject()));
        Alone { side: place, measures: own.map(SideMeasure::key).collect() }
    });
    found.filter(|alone| !alone.measures.is_empty()).collect()
}

/// Caveat that two sides are not known to be of one class in what is compared; the sides state the reasons.
fn promise_caveat(sides: &[Side], place: usize, against: usize, rows: &[MeasureRow]) -> Option<String> {
    let compared: Vec<&str> =
        rows.iter().filter(|row| row.comparison.is_some()).map(|row| row.measure.as_str()).collect();
    let mut measures = sides[place].measures.iter().filter(|measure| compared.contains(&measure.key().as_str()));
    let classes = measures.find_map(|measure| {
        let other = judge::same_in(&sides[against], measure)?;
        Some((measure.durability.as_ref()?.class, other.durability.as_ref()?.class))
    });
    match classes? {
        (DurabilityClass::Unknown, DurabilityClass::Unknown) => {
            Some("Durability of synced writes is unknown on both sides.".to_owned())
        }
        (one, other) if one == DurabilityClass::Unknown || other == DurabilityClass::Unknown => Some(format!(
            "Synced writes may not be equally durable: {} {}, {} {}.",
            mark(place),
            class_word(one),
            mark(against),
            class_word(other)
        )),
        _ => None,
    }
}

/// Caveats that apply to all ratios.
fn caveats(sides: &[Side], pairs: &[PairFinding]) -> Vec<String> {
    let rows = pairs.iter().flat_map(|pair| &pair.rows);
    let compared: Vec<&Comparison> = rows.clone().filter_map(|row| row.comparison.as_ref()).collect();
    let methods: Vec<Method> = compared.iter().map(|comparison| comparison.method).collect();
    let once = methods.contains(&Method::SingleRuns)
        || compared.iter().any(|comparison| comparison.outcome == RatioOutcome::NotRepeated);
    let single = format!(
        "{} For a firm result, repeat: list repeats of an imported case in publication.toml, or give pgstrata probe both \
         folders at once (it alternates between them)",
        single::sentence()
    );
    let general = [
        (once, single.as_str()),
        (
            rows.clone().any(is_no_quotient),
            "ratios of interleaved trials use only the blocks that both sides have; where a block is missing, the ratio \
             is not the quotient of the two means beside it",
        ),
        (
            methods.contains(&Method::PercentilesTogether),
            "percentiles and maxima without an interval are those of all trials of a side merged, not means of trials",
        ),
        (
            methods.contains(&Method::Slices),
            "intervals from slices cover these minutes only, not another hour, another location on the device or other \
             load on the host",
        ),
    ];
    let mut found: Vec<String> =
        general.iter().filter(|(holds, _)| *holds).map(|(_, caveat)| (*caveat).to_owned()).collect();
    for pair in pairs.iter().filter(|pair| pair.rows.iter().any(|row| row.comparison.is_some())) {
        let unknown: Vec<&str> = unknown(&sides[pair.side], &sides[pair.against]).into_iter().collect();
        if !unknown.is_empty() {
            let marks = format!("{}, {}", mark(pair.against), mark(pair.side));
            found.push(format!("{marks}: {} unknown on both sides and may differ", unknown.join(", ")));
        }
    }
    found
}

/// True if dividing the two figures of a row gives a different ratio from the one shown.
fn is_no_quotient(row: &MeasureRow) -> bool {
    const SEEN: f64 = 0.02;
    let quotient = row.value.value / row.reference.value;
    row.comparison.as_ref().is_some_and(|comparison| (comparison.ratio / quotient).ln().abs() > SEEN)
}

/// Conditions that neither of two sides states, for measures of the same name. A script known only to be the user's own
/// may be any script, unless both were imported together.
fn unknown(side: &Side, reference: &Side) -> BTreeSet<&'static str> {
    const OWN: [&str; 3] = ["custom query", "custom script", "multiple scripts"];
    let common = side.measures.iter().filter(|measure| judge::same_in(reference, measure).is_some());
    let silent = common.flat_map(|measure| &measure.conditions).filter(|condition| {
        let value = condition.value.as_deref().map(str::to_lowercase);
        value.is_none_or(|value| side.argument != reference.argument && OWN.contains(&value.as_str()))
    });
    silent.map(|condition| condition.kind.words()).collect()
}
