//! Everything that may not be compared between two sides, one entry per reason.

use super::findings::{ComparisonRefusal, Reason};
use super::judge::{Objection, differing_conditions, objection, reason_title, same_in, weightiest_difference};
use super::mark;
use super::side::{Side, SideMeasure};
use crate::analyse::findings::groups::{by_key, distinct};
use crate::analyse::findings::names;
use std::collections::{BTreeMap, BTreeSet};

/// Most values listed for one side of an entry.
const MOST_VALUES: usize = 6;

/// The indexes of two sides, their values, and the names of the two measures.
type Refused = ((usize, usize), (String, String), [String; 2]);

/// What may not be compared between pairs of sides, each reason once.
pub fn among(sides: &[Side], pairs: &[(usize, usize)]) -> Vec<ComparisonRefusal> {
    let found = pairs.iter().flat_map(|places| {
        between(&sides[places.0], &sides[places.1]).into_iter().map(|(Objection { reason, about, values }, of)| {
            let about = if reason == Reason::NotTold { format!(", {about}") } else { String::new() };
            ((reason, about), (*places, values, of.map(SideMeasure::key)))
        })
    });
    by_key(found).into_iter().map(|((reason, about), refused)| refusal(reason, &about, refused)).collect()
}

/// Objections between two sides; the result does not depend on their order.
fn between<'s>(a: &'s Side, b: &'s Side) -> Vec<(Objection, [&'s SideMeasure; 2])> {
    let mut pairs: Vec<(Option<Objection>, [&SideMeasure; 2])> = Vec::new();
    for measure in &a.measures {
        match same_in(b, measure) {
            Some(same) => pairs.push((objection(measure, same), [measure, same])),
            None => pairs.extend(nearest(measure, b).map(|it| (weightiest_difference(measure, it), [measure, it]))),
        }
    }
    for measure in b.measures.iter().filter(|measure| same_in(a, measure).is_none()) {
        pairs.extend(nearest(measure, a).map(|it| (weightiest_difference(it, measure), [it, measure])));
    }
    // A percentile that one side lacks is no objection to those that both have.
    let is_told = |it: &Objection, [one, other]: [&SideMeasure; 2]| {
        it.reason != Reason::MeanAgainstPercentile || (same_in(b, one).is_none() && same_in(a, other).is_none())
    };
    pairs.into_iter().filter_map(|(objection, of)| Some((objection?, of))).filter(|(it, of)| is_told(it, *of)).collect()
}

/// Figures of a side with the same subject and the fewest differing conditions.
fn nearest<'a>(measure: &SideMeasure, side: &'a Side) -> impl Iterator<Item = &'a SideMeasure> {
    let others = side.measures.iter().filter(|other| other.subject() == measure.subject());
    let ranked: Vec<(usize, &SideMeasure)> =
        others.map(|other| (differing_conditions(measure, other).len(), other)).collect();
    let least = ranked.iter().map(|(differing, _)| *differing).min().unwrap_or(0);
    ranked.into_iter().filter(move |(differing, _)| *differing == least).map(|(_, other)| other)
}

fn refusal(reason: Reason, about: &str, refused: Vec<Refused>) -> ComparisonRefusal {
    let mut values: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    let (mut sides, mut measures) = (Vec::new(), BTreeSet::new());
    for (places, of, keys) in refused {
        sides.push(places);
        values.entry(places.0).or_default().insert(of.0);
        values.entry(places.1).or_default().insert(of.1);
        measures.extend(keys);
    }
    let alike = by_key(values.iter().map(|(side, values)| (listed(values), mark(*side))));
    let alike = alike.iter().map(|(values, marks)| format!("{values} ({})", marks.join(", ")));
    let words = format!("{}{about}: {}", reason_title(reason), alike.collect::<Vec<String>>().join(" against "));
    ComparisonRefusal { sides: distinct(sides), reason, words, measures: measures.into_iter().collect() }
}

/// Values in numeric order if they are numbers.
fn listed(values: &BTreeSet<String>) -> String {
    let mut sorted: Vec<&String> = values.iter().collect();
    sorted.sort_by(|a, b| match [a, b].map(|it| it.split(' ').next().and_then(|first| first.parse::<f64>().ok())) {
        [Some(a), Some(b)] => a.total_cmp(&b),
        _ => a.cmp(b),
    });
    names::first(sorted.iter(), MOST_VALUES, ", ", " and ")
}
