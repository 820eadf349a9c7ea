//! Everything that may not be compared between two sides, like with like in one entry.

use super::findings::{Reason, Refusal};
use super::judge::{Objection, differing_conditions, objection, reason_title, same_measure, weightiest_difference};
use super::mark;
use super::side::{Measure, Side};
use std::collections::BTreeSet;

/// Most values that an entry lists for one side.
const MOST_VALUES: usize = 6;

/// An entry in the making.
struct Entry {
    reason: Reason,
    about: String,
    /// Values at either side.
    values: (BTreeSet<String>, BTreeSet<String>),
    measures: BTreeSet<String>,
}

/// What may not be compared between two sides; the same whichever is named first.
#[must_use]
pub fn between(sides: &[Side], one: usize, other: usize) -> Vec<Refusal> {
    let places = (one.min(other), one.max(other));
    let (a, b) = (&sides[places.0], &sides[places.1]);
    let marks = (mark(places.0), mark(places.1));
    let mut entries: Vec<Entry> = Vec::new();
    for measure in &a.measures {
        match same_subject(measure, b).find(|found| same_measure(measure, found)) {
            Some(found) => add(&mut entries, objection(measure, found), measure, found),
            None => nearest(measure, same_subject(measure, b))
                .into_iter()
                .for_each(|found| add(&mut entries, weightiest_difference(measure, found), measure, found)),
        }
    }
    for measure in b.measures.iter().filter(|it| !same_subject(it, a).any(|found| same_measure(found, it))) {
        nearest(measure, same_subject(measure, a))
            .into_iter()
            .for_each(|found| add(&mut entries, weightiest_difference(found, measure), found, measure));
    }
    entries.into_iter().map(|entry| entry.refusal(places, &marks)).collect()
}

fn same_subject<'a>(measure: &Measure, side: &'a Side) -> impl Iterator<Item = &'a Measure> {
    side.measures.iter().filter(|found| found.subject() == measure.subject())
}

/// Those that differ from a measure in the fewest conditions.
fn nearest<'a>(measure: &Measure, others: impl Iterator<Item = &'a Measure>) -> Vec<&'a Measure> {
    let ranked: Vec<(usize, &Measure)> =
        others.map(|other| (differing_conditions(measure, other).len(), other)).collect();
    let least = ranked.iter().map(|(differing, _)| *differing).min().unwrap_or(0);
    ranked.into_iter().filter(|(differing, _)| *differing == least).map(|(_, other)| other).collect()
}

fn add(entries: &mut Vec<Entry>, objection: Option<Objection>, a: &Measure, b: &Measure) {
    let Some(objection) = objection else { return };
    let same = |entry: &Entry| entry.reason == objection.reason && entry.about == objection.about;
    let place = entries.iter().position(same).unwrap_or_else(|| {
        entries.push(Entry {
            reason: objection.reason,
            about: objection.about.clone(),
            values: (BTreeSet::new(), BTreeSet::new()),
            measures: BTreeSet::new(),
        });
        entries.len() - 1
    });
    let found = &mut entries[place];
    found.values.0.insert(objection.values.0);
    found.values.1.insert(objection.values.1);
    found.measures.extend([a.key(), b.key()]);
}

impl Entry {
    fn refusal(self, sides: (usize, usize), marks: &(String, String)) -> Refusal {
        let title = reason_title(self.reason);
        let about = if self.reason == Reason::NotTold { format!("{title}, {}", self.about) } else { title.to_owned() };
        let (one, other) = (listed(&self.values.0), listed(&self.values.1));
        let words = format!("{about}: {one} ({}) against {other} ({})", marks.0, marks.1);
        Refusal { sides, reason: self.reason, words, measures: self.measures.into_iter().collect() }
    }
}

/// Values in the order of their numbers, where they are numbers.
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
