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
            let known = groups.iter_mut().find(|(known, _, cases)| {
                !cases.is_empty() && known.weight == remark.weight && known.words == remark.words
            });
            match known {
                Some((_, numbers, cases)) => {
                    numbers.extend(remark.number);
                    cases.push(case);
                }
                None => groups.push((remark.clone(), remark.number.into_iter().collect(), vec![case])),
            }
        }
    }
    groups.sort_by_key(|(remark, _, cases)| (remark.weight, std::cmp::Reverse(cases.len())));
    let cautions = groups.into_iter().map(|(remark, numbers, mut cases)| {
        let text = if cases.len() > 1 { filled(&remark.words, &numbers) } else { remark.text() };
        // A case is named once, however many of its trials have the remark.
        cases.dedup();
        let ids = cases.iter().map(|case| all[*case].spec.id.clone()).collect();
        Caution { text, scope: scope(all, &cases), cases: ids }
    });
    cautions.collect()
}

/// Common description of several cases, among those measured.
fn scope(all: &[CaseSums], cases: &[usize]) -> Option<String> {
    let every = if all.iter().all(|case| !case.trials.is_empty()) { "all cases" } else { "all measured cases" };
    let kinds: [(&str, &[bool]); 3] =
        [(every, &[true, false]), ("all cases with a server", &[true]), ("all cases without a server", &[false])];
    let kind = kinds.into_iter().find(|(_, with_server)| {
        let numbered = all.iter().enumerate();
        let of_kind =
            numbered.filter(|(_, case)| !case.trials.is_empty() && with_server.contains(&case.spec.postgres.is_some()));
        cases.len() > 1 && of_kind.map(|(place, _)| place).eq(cases.iter().copied())
    });
    kind.map(|(words, _)| words.to_owned())
}
