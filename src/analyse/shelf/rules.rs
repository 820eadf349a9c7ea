//! What figures that others published, or that a user imports, say without being asked. Each rule has its number, what it
//! is held against, and where that comes from.

use super::findings::{Remark, Weight};
use super::select::Found;
use super::{rules_commit, rules_facts, rules_place, rules_price, rules_sync};
use crate::record::imported::{ImportRecord, ImportedCase};

/// Every remark, the gravest first, else in the order of the cases.
#[must_use]
pub fn remarks(record: &ImportRecord) -> Vec<Remark> {
    let mut found = Vec::new();
    for case in &record.cases {
        found.extend(rules_facts::of_case(record, case));
        found.extend(rules_place::of_case(record, case));
        for (number, trial) in (1..).zip(&case.trials) {
            let of_trial =
                rules_sync::of_trial(record, case, trial).into_iter().chain(rules_commit::of_trial(case, trial));
            let which = if case.trials.len() > 1 { format!("trial {number}: ") } else { String::new() };
            found.extend(of_trial.map(|remark| Remark { sentence: format!("{which}{}", remark.sentence), ..remark }));
        }
    }
    found.extend(rules_commit::iostat_interval(record));
    found.extend(rules_price::of_record(record));
    found.sort_by_key(|remark| remark.weight);
    found
}

/// A rule that is put together.
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) weight: Weight,
    pub(super) source: &'static str,
}

impl Rule {
    /// What it says of rows of one case.
    pub(super) fn says(
        &self,
        rows: &[Found<'_>],
        measured: Option<(f64, f64, &str)>,
        sentence: String,
    ) -> Option<Remark> {
        let first = rows.first()?;
        let remark = self.says_of(first.case, rows.iter().map(Found::at).collect(), sentence);
        Some(Remark {
            number: measured.map(|(number, ..)| number),
            threshold: measured.map(|(_, threshold, _)| threshold),
            unit: measured.map_or("", |(.., unit)| unit).to_owned(),
            ..remark
        })
    }

    /// What it says of a case, without a number; `at` are the places that show it.
    pub(super) fn says_of(&self, case: &ImportedCase, at: Vec<(String, u32)>, sentence: String) -> Remark {
        Remark {
            rule: self.name.to_owned(),
            weight: self.weight,
            case: case.name.clone(),
            number: None,
            threshold: None,
            unit: String::new(),
            source: self.source.to_owned(),
            sentence,
            at,
        }
    }
}
