//! Limits for a terminal, plain UTF-8 without colours. Every text from outside is passed through `printable`.

use super::{change, summary, word};
use crate::analyse::findings::groups::by_key;
use crate::analyse::limits::{LimitFinding, LimitFindings};
use crate::report::layout::{ABSENT, TextTable};
use crate::report::text::{paragraph, section};
use crate::units::significant;

/// The whole report.
pub fn terminal(findings: &LimitFindings) -> String {
    let mut text = paragraph("", &format!("{}: {}", word(findings.outcome), summary(findings)));
    text.push('\n');
    text.push_str(&paragraph("run       ", &findings.run));
    text.push_str(&paragraph("baseline  ", &findings.baseline));
    if !findings.limits.is_empty() {
        text.push('\n');
        text.push_str(&table(findings));
    }
    let decided = by_key(findings.limits.iter().map(|finding| (&finding.how, finding.case.as_str()))).into_iter();
    let decided = decided.map(|(how, mut cases)| {
        cases.dedup();
        paragraph("  - ", &format!("{}: {how}", cases.join(", ")))
    });
    let differing = findings.facts_that_differ.iter().map(|fact| {
        let values = fact.values.iter().map(|value| value.as_deref().unwrap_or("unknown"));
        paragraph("  ", &format!("{}: {}", fact.key, values.collect::<Vec<_>>().join(" → ")))
    });
    text + &section("How each was decided", decided)
        + &section("Facts that differ: the candidate causes", differing)
        + &section("Notes", findings.notes.iter().map(|note| paragraph("  - ", &format!("{note}."))))
}

/// A limit as given by the user; one that covers several figures of a case, with the name of the figure.
fn limit(finding: &LimitFinding, all: &[LimitFinding]) -> String {
    let alike = all.iter().filter(|one| one.case == finding.case && one.limit == finding.limit).count();
    if alike > 1 { format!("{} of {}", finding.limit, finding.measure) } else { finding.limit.clone() }
}

fn table(findings: &LimitFindings) -> String {
    let rows = findings.limits.iter().map(|finding| {
        let [baseline, value] = [finding.baseline, finding.value].map(|value| {
            let text = value.map(|value| format!("{} {}", significant(value), finding.unit));
            text.map_or_else(|| ABSENT.to_owned(), |text| text.trim_end().to_owned())
        });
        let limit = limit(finding, &findings.limits);
        [word(finding.outcome).to_owned(), finding.case.clone(), limit, baseline, value, change(finding)]
    });
    TextTable::new(["", "case", "limit", "baseline", "run", "change (95 % CI)"], &[3, 4]).rows(rows).shown()
}
