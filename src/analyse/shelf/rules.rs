//! Rules on imported or published figures. Each has a name, a threshold and a source.

use crate::analyse::shelf::findings::RuleRemark;
use crate::analyse::shelf::{rules_facts, rules_load, rules_sync};
use crate::record::imported::ImportRecord;

/// All remarks, gravest first, then in the order of the cases.
pub fn remarks(record: &ImportRecord) -> Vec<RuleRemark> {
    let mut found = Vec::new();
    for case in &record.cases {
        found.extend(rules_facts::of_case(record, case));
        for (number, trial) in (1..).zip(&case.trials) {
            let of_trial =
                rules_sync::of_trial(record, case, trial).into_iter().chain(rules_load::of_trial(case, trial));
            let which = if case.trials.len() > 1 { format!("trial {number}: ") } else { String::new() };
            found.extend(of_trial.map(|it| RuleRemark { sentence: format!("{which}{}", it.sentence), ..it }));
        }
    }
    // Pairs of cases that differ only in whether a sync is done.
    let pairs = record.cases.iter().flat_map(|a| record.cases.iter().map(move |b| (a, b)));
    found.extend(pairs.filter_map(|(without, with)| rules_facts::price(without, with)));
    found.sort_by_key(|remark| remark.weight);
    found
}
