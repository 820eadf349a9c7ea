//! Everything that may not be compared between two sides, one entry per reason.

use super::findings::{ComparisonRefusal, Reason};
use super::judge::{Objection, differing_conditions, objection, reason_title, same_in, weightiest_difference};
use super::mark;
use super::side::{Side, SideMeasure};
use crate::analyse::findings::groups::{by_key, place_of};
use std::collections::{BTreeMap, BTreeSet};

/// Most values listed for one side of an entry.
const MOST_VALUES: usize = 6;

struct Entry {
    reason: Reason,
    about: String,
    sides: Vec<(usize, usize)>,
    /// Values on each side.
    values: BTreeMap<usize, BTreeSet<String>>,
    measures: BTreeSet<String>,
}

/// What may not be compared between pairs of sides, each reason once.
pub fn among(sides: &[Side], pairs: &[(usize, usize)]) -> Vec<ComparisonRefusal> {
    let mut entries: Vec<Entry> = Vec::new();
    for places in pairs {
        between(&mut entries, sides, *places);
    }
    entries.into_iter().map(Entry::refusal).collect()
}

/// Adds the refusals between two sides; the result does not depend on their order.
fn between(entries: &mut Vec<Entry>, sides: &[Side], places: (usize, usize)) {
    let (a, b) = (&sides[places.0], &sides[places.1]);
    for measure in &a.measures {
        if let Some(found) = same_in(b, measure) {
            add(entries, places, objection(measure, found), [measure, found]);
            continue;
        }
        for found in nearest(measure, b) {
            add(entries, places, weightiest_difference(measure, found), [measure, found]);
        }
    }
    for measure in b.measures.iter().filter(|measure| same_in(a, measure).is_none()) {
        for found in nearest(measure, a) {
            add(entries, places, weightiest_difference(found, measure), [found, measure]);
        }
    }
}

/// Figures of a side with the same subject and the fewest differing conditions.
fn nearest<'a>(measure: &SideMeasure, side: &'a Side) -> Vec<&'a SideMeasure> {
    let others = side.measures.iter().filter(|other| other.subject() == measure.subject());
    let ranked: Vec<(usize, &SideMeasure)> =
        others.map(|other| (differing_conditions(measure, other).len(), other)).collect();
    let least = ranked.iter().map(|(differing, _)| *differing).min().unwrap_or(0);
    ranked.into_iter().filter(|(differing, _)| *differing == least).map(|(_, other)| other).collect()
}

fn add(entries: &mut Vec<Entry>, places: (usize, usize), objection: Option<Objection>, of: [&SideMeasure; 2]) {
    let Some(Objection { reason, about, values }) = objection else { return };
    let same = |entry: &Entry| entry.reason == reason && (reason != Reason::NotTold || entry.about == about);
    let (sides, measures) = (Vec::new(), BTreeSet::new());
    let new = || Entry { reason, about: about.clone(), sides, values: BTreeMap::new(), measures };
    let place = place_of(entries, same, new);
    let found = &mut entries[place];
    if !found.sides.contains(&places) {
        found.sides.push(places);
    }
    found.values.entry(places.0).or_default().insert(values.0);
    found.values.entry(places.1).or_default().insert(values.1);
    found.measures.extend(of.map(SideMeasure::key));
}

impl Entry {
    fn refusal(self) -> ComparisonRefusal {
        let title = reason_title(self.reason);
        let about = if self.reason == Reason::NotTold { format!("{title}, {}", self.about) } else { title.to_owned() };
        let alike = by_key(self.values.iter().map(|(side, values)| (listed(values), mark(*side))));
        let values: Vec<String> =
            alike.iter().map(|(values, marks)| format!("{values} ({})", marks.join(", "))).collect();
        let words = format!("{about}: {}", values.join(" against "));
        ComparisonRefusal {
            sides: self.sides,
            reason: self.reason,
            words,
            measures: self.measures.into_iter().collect(),
        }
    }
}

/// Values in numeric order if they are numbers.
fn listed(values: &BTreeSet<String>) -> String {
    let mut sorted: Vec<&String> = values.iter().collect();
    let number = |text: &str| text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    sorted.sort_by(|a, b| match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.cmp(b),
    });
    let shown: Vec<&str> = sorted.iter().take(MOST_VALUES).map(|value| value.as_str()).collect();
    let more =
        if sorted.len() > MOST_VALUES { format!(" and {} more", sorted.len() - MOST_VALUES) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
