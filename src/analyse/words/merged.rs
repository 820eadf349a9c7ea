//! Merges remarks on several cases into cautions, most important first.

use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::Caution;
use crate::analyse::findings::remark::{Number, Remark, Weight, filled};

/// Remarks on the run and on each case as cautions, most important first.
pub fn cautions(of_run: Vec<Remark>, all: &[CaseSums], of_cases: &[Vec<Remark>]) -> Vec<Caution> {
    let single = of_run.iter().any(|remark| remark.weight == Weight::SingleTrial);
    let mut groups: Vec<(Remark, Vec<Number>, Vec<usize>)> =
        of_run.into_iter().map(|remark| (remark, Vec::new(), Vec::new())).collect();
    for (case, remarks) in of_cases.iter().enumerate() {
        // Remarks on the whole run appear once.
        for remark in remarks.iter().filter(|remark| !(single && remark.weight == Weight::SingleTrial)) {
            let same = |known: &Remark| known.weight == remark.weight && known.words == remark.words;
            match groups.iter_mut().find(|(known, _, cases)| !cases.is_empty() && same(known)) {
                Some((_, numbers, cases)) => {
                    numbers.extend(remark.number);
                    cases.push(case);
                }
                None => groups.push((remark.clone(), remark.number.into_iter().collect(), vec![case])),
            }
        }
    }
    groups.sort_by_key(|(remark, _, cases)| (remark.weight, std::cmp::Reverse(cases.len())));
    let caution = |(remark, numbers, cases): (Remark, Vec<Number>, Vec<usize>)| Caution {
        text: if cases.len() > 1 { filled(&remark.words, &numbers) } else { remark.text() },
        scope: scope(all, &cases),
        cases: cases.into_iter().map(|case| all[case].spec.id.clone()).collect(),
    };
    groups.into_iter().map(caution).collect()
}

/// Common description of several cases, among those measured.
fn scope(all: &[CaseSums], cases: &[usize]) -> Option<String> {
    let with_server = |case: usize| all[case].spec.postgres.is_some();
    let are_all = |wanted: &dyn Fn(usize) -> bool| {
        (0..all.len()).filter(|case| !all[*case].trials.is_empty() && wanted(*case)).eq(cases.iter().copied())
    };
    let kinds: [(&str, &dyn Fn(usize) -> bool); 3] = [
        (if all.iter().any(|case| case.trials.is_empty()) { "all measured cases" } else { "all cases" }, &|_| true),
        ("all cases with a server", &with_server),
        ("all cases without a server", &|case| !with_server(case)),
    ];
    let kind = kinds.into_iter().find(|(_, wanted)| cases.len() > 1 && are_all(*wanted));
    kind.map(|(words, _)| words.to_owned())
}
