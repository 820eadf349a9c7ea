//! Decides whether two figures may be compared. The answer does not depend on their order.

use super::findings::Reason;
use super::side::{ConditionKind, FigureKind, MeasureCondition, Medium, Side, SideMeasure, UnsyncedForm};
use crate::analyse::findings::durability::class_word;
use crate::analyse::findings::{Durability, DurabilityClass};

/// A difference that forbids a comparison, with the value on either side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    pub reason: Reason,
    /// Differing condition: `clients`.
    pub about: String,
    /// Values of the first and the second.
    pub values: (String, String),
}

impl Objection {
    fn new(reason: Reason, about: impl Into<String>, a: impl Into<String>, b: impl Into<String>) -> Objection {
        Objection { reason, about: about.into(), values: (a.into(), b.into()) }
    }
}

/// Why two figures of one subject may not be compared; `None` if they may.
pub fn objection(a: &SideMeasure, b: &SideMeasure) -> Option<Objection> {
    weightiest_difference(a, b).or_else(|| circumstances(a, b))
}

/// The most important difference in conditions; if conditions are merely unknown, all of these together.
pub fn weightiest_difference(a: &SideMeasure, b: &SideMeasure) -> Option<Objection> {
    let mut differing = differing_conditions(a, b).into_iter();
    let first = differing.next()?;
    if first.reason != Reason::NotTold {
        return Some(first);
    }
    let more = differing.filter(|objection| objection.reason == Reason::NotTold);
    Some(more.fold(first, |all, objection| {
        let join = |one: &str, other: &str| if one == other { one.to_owned() } else { format!("{one}, {other}") };
        let values = (join(&all.values.0, &objection.values.0), join(&all.values.1, &objection.values.1));
        Objection { about: format!("{}, {}", all.about, objection.about), values, ..all }
    }))
}

/// True if two figures of one subject have the same name: only the system and its durability may differ.
pub fn same_measure(a: &SideMeasure, b: &SideMeasure) -> bool {
    differing_conditions(a, b).is_empty()
}

/// The figure on a side with the same name.
pub fn same_in<'s>(side: &'s Side, measure: &SideMeasure) -> Option<&'s SideMeasure> {
    side.measures.iter().find(|other| other.subject() == measure.subject() && same_measure(measure, other))
}

/// Conditions in which two figures of one subject differ, most important first.
pub fn differing_conditions(a: &SideMeasure, b: &SideMeasure) -> Vec<Objection> {
    let value = |measure: &SideMeasure, kind| -> Option<String> {
        measure.conditions.iter().find(|condition: &&MeasureCondition| condition.kind == kind)?.value.clone()
    };
    let mut kinds: Vec<ConditionKind> = a.conditions.iter().chain(&b.conditions).map(|c| c.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut found: Vec<Objection> = Vec::new();
    for kind in kinds {
        let objection = match (value(a, kind), value(b, kind)) {
            (Some(a), Some(b)) if a != b => Objection::new(reason_of(kind), kind.words(), a, b),
            (Some(a), None) => Objection::new(Reason::NotTold, kind.words(), a, "unknown"),
            (None, Some(b)) => Objection::new(Reason::NotTold, kind.words(), "unknown", b),
            _ => continue,
        };
        found.push(objection);
    }
    // A known difference says more than an unknown condition.
    found.sort_by_key(|objection| objection.reason == Reason::NotTold);
    if a.figure != b.figure {
        let about = "figure";
        found.push(Objection::new(Reason::MeanAgainstPercentile, about, figure_word(a), figure_word(b)));
    }
    found
}

fn figure_word(measure: &SideMeasure) -> String {
    match &measure.figure {
        FigureKind::Rate => "rate".to_owned(),
        FigureKind::Mean => "mean".to_owned(),
        FigureKind::Percentile(which) => which.clone(),
    }
}

fn reason_of(kind: ConditionKind) -> Reason {
    match kind {
        ConditionKind::Workload => Reason::OtherWorkload,
        ConditionKind::Scale => Reason::OtherScale,
        ConditionKind::Clients => Reason::OtherClients,
        ConditionKind::WriteSize => Reason::OtherWriteSize,
        ConditionKind::QueryMode | ConditionKind::RateLimit | ConditionKind::Connecting => Reason::OtherConditions,
    }
}

/// Why two figures of the same name may not be compared.
fn circumstances(a: &SideMeasure, b: &SideMeasure) -> Option<Objection> {
    let absent = |measure: &SideMeasure| measure.absent.clone().unwrap_or_else(|| "measured".to_owned());
    match (&a.absent, &b.absent) {
        (None, None) => {}
        (Some(_), Some(_)) => return None,
        _ => return Some(Objection::new(Reason::NotToBeHad, "row", absent(a), absent(b))),
    }
    let failed = |measure: &SideMeasure| measure.failure.clone().unwrap_or_else(|| "measured".to_owned());
    if a.failure.is_some() || b.failure.is_some() {
        return Some(Objection::new(Reason::SyncFailed, "sync", failed(a), failed(b)));
    }
    if a.emulated || b.emulated {
        let word = |measure: &SideMeasure| if measure.emulated { "emulated" } else { "not emulated" };
        return Some(Objection::new(Reason::EmulatedCpu, "CPU", word(a), word(b)));
    }
    if let (Some(one), Some(other)) = (a.unsynced_form, b.unsynced_form)
        && (one != other || one == UnsyncedForm::Unknown)
    {
        return Some(Objection::new(Reason::NotSyncedAcrossVersions, "test", form_words(one), form_words(other)));
    }
    if let (Medium::Memory, Medium::Disk) | (Medium::Disk, Medium::Memory) = (a.medium, b.medium) {
        return Some(Objection::new(Reason::MemoryAgainstDisk, "files", medium_word(a.medium), medium_word(b.medium)));
    }
    if let (Medium::Memory, Medium::Disk) | (Medium::Disk, Medium::Memory) = (a.data, b.data) {
        let word = |measure: &SideMeasure| if measure.data == Medium::Memory { "fit into RAM" } else { "on disk" };
        return Some(Objection::new(Reason::DataInMemoryAgainstDisk, "data", word(a), word(b)));
    }
    let class = |measure: &SideMeasure| measure.durability.as_ref().map(|found| found.class);
    match (class(a), class(b)) {
        (Some(one), Some(other)) if !may_promise_the_same(one, other) => {
            let word = |durability: &Option<Durability>| {
                let found = durability.as_ref();
                found.map_or_else(String::new, |d| format!("{} ({})", class_word(d.class), d.reason))
            };
            Some(Objection::new(Reason::OtherDurability, "durability", word(&a.durability), word(&b.durability)))
        }
        _ if a.value <= 0.0 || b.value <= 0.0 || !a.value.is_finite() || !b.value.is_finite() => {
            let word = |measure: &SideMeasure| if measure.value > 0.0 { "measured" } else { "no operations" };
            Some(Objection::new(Reason::NothingDone, "operations", word(a), word(b)))
        }
        _ => None,
    }
}

/// True if two classes may promise the same. A case known to lose commits is not compared with one that is not.
fn may_promise_the_same(one: DurabilityClass, other: DurabilityClass) -> bool {
    use DurabilityClass::{DeclaredStable, Flushed, NotApplicable, Unknown};
    let may_keep_all = |class| matches!(class, NotApplicable | Flushed | DeclaredStable | Unknown);
    one == other || (may_keep_all(one) && may_keep_all(other))
}

fn form_words(form: UnsyncedForm) -> &'static str {
    match form {
        UnsyncedForm::OpensEachTime => "opens and closes the file for each write (until 13)",
        UnsyncedForm::KeepsOpen => "keeps the file open (since 14)",
        UnsyncedForm::Unknown => "unknown whether this version keeps the file open",
    }
}

pub fn medium_word(medium: Medium) -> &'static str {
    match medium {
        Medium::Memory => "in memory",
        Medium::Disk => "on a device",
        Medium::Unknown => "unknown",
    }
}

/// Title of a reason in a list of refusals.
pub fn reason_title(reason: Reason) -> &'static str {
    match reason {
        Reason::OtherWorkload => "different workload",
        Reason::OtherScale => "different scale",
        Reason::OtherClients => "different client count",
        Reason::OtherWriteSize => "different write size",
        Reason::OtherConditions => "different conditions",
        Reason::NotTold => "a condition is unknown on one side",
        Reason::MeanAgainstPercentile => "mean vs. percentile",
        Reason::NotToBeHad => "not available on one side",
        Reason::SyncFailed => "a sync failed",
        Reason::NotSyncedAcrossVersions => "unsynced writes of different pg_test_fsync versions",
        Reason::MemoryAgainstDisk => "memory vs. disk",
        Reason::DataInMemoryAgainstDisk => "data in RAM vs. data on disk",
        Reason::EmulatedCpu => "speed on an emulated CPU",
        Reason::OtherDurability => "different durability class",
        Reason::NothingDone => "no operations were done",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_on_an_emulated_cpu_is_compared_with_nothing() {
        let on = |emulated| SideMeasure {
            emulated,
            ..SideMeasure::new("pgbench", Vec::new(), "tps", FigureKind::Rate, "tps", 1.0)
        };
        for (one, other) in [(true, false), (false, true), (true, true)] {
            assert_eq!(objection(&on(one), &on(other)).map(|found| found.reason), Some(Reason::EmulatedCpu));
        }
        assert_eq!(objection(&on(false), &on(false)), None);
    }
}
