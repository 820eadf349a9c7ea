//! Decides whether two figures may be compared. The answer does not depend on their order.

use super::findings::Reason;
use super::side::{ConditionKind, FigureKind, Medium, Side, SideMeasure, UnsyncedForm};
use crate::analyse::findings::DurabilityClass;
use crate::analyse::findings::durability::class_word;

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
    fn new(reason: Reason, about: &str, values: [impl Into<String>; 2]) -> Objection {
        Objection { reason, about: about.to_owned(), values: values.map(Into::into).into() }
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
        let values = [(all.values.0, objection.values.0), (all.values.1, objection.values.1)];
        let values = values.map(|(one, other)| if one == other { one } else { format!("{one}, {other}") });
        Objection { about: format!("{}, {}", all.about, objection.about), values: values.into(), ..all }
    }))
}

/// The figure on a side with the same name: only the system and its durability may differ.
pub fn same_in<'s>(side: &'s Side, measure: &SideMeasure) -> Option<&'s SideMeasure> {
    let is_same =
        |other: &&SideMeasure| other.subject() == measure.subject() && differing_conditions(measure, other).is_empty();
    side.measures.iter().find(is_same)
}

/// Conditions in which two figures of one subject differ, most important first.
pub fn differing_conditions(a: &SideMeasure, b: &SideMeasure) -> Vec<Objection> {
    let mut kinds: Vec<ConditionKind> = a.conditions.iter().chain(&b.conditions).map(|c| c.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let differing = kinds.into_iter().filter_map(|kind| {
        let values = [a, b].map(|it| it.conditions.iter().find(|condition| condition.kind == kind)?.value.as_deref());
        let is_told = values.iter().all(Option::is_some);
        let reason = if is_told { reason_of(kind) } else { Reason::NotTold };
        let words = values.map(|value| value.unwrap_or("unknown"));
        // Of one case it is told in which options the other cases of its side differ, which a run of fewer has fewer of.
        let is_of_others = kind == ConditionKind::Options && a.is_of_case_of(b) && has_part(words);
        (values[0] != values[1] && !is_of_others).then(|| Objection::new(reason, kind.words(), words))
    });
    let mut found: Vec<Objection> = differing.collect();
    // A known difference says more than an unknown condition.
    found.sort_by_key(|objection| objection.reason == Reason::NotTold);
    if a.figure != b.figure {
        found.push(Objection::new(Reason::MeanAgainstPercentile, "figure", [a, b].map(figure_word)));
    }
    found
}

/// True if one list has all parts of the other.
fn has_part([one, other]: [&str; 2]) -> bool {
    let is_part = |part: &str, whole: &str| {
        part.is_empty() || part.split(", ").all(|one| whole.split(", ").any(|other| one == other))
    };
    is_part(one, other) || is_part(other, one)
}

fn figure_word(measure: &SideMeasure) -> &str {
    match &measure.figure {
        FigureKind::Rate => "rate",
        FigureKind::Mean => "mean",
        FigureKind::Counter => "counter",
        FigureKind::Percentile(which) => which,
    }
}

fn reason_of(kind: ConditionKind) -> Reason {
    match kind {
        ConditionKind::Workload => Reason::OtherWorkload,
        ConditionKind::Scale => Reason::OtherScale,
        ConditionKind::Clients => Reason::OtherClients,
        ConditionKind::WriteSize => Reason::OtherWriteSize,
        ConditionKind::QueryMode | ConditionKind::RateLimit | ConditionKind::Connecting | ConditionKind::Options => {
            Reason::OtherConditions
        }
    }
}

/// Why two figures of the same name may not be compared.
fn circumstances(a: &SideMeasure, b: &SideMeasure) -> Option<Objection> {
    let both = [a, b];
    match (&a.absent, &b.absent) {
        (None, None) => {}
        (Some(_), Some(_)) => return None,
        _ => {
            let words = both.map(|it| it.absent.as_deref().unwrap_or("measured"));
            return Some(Objection::new(Reason::NotToBeHad, "row", words));
        }
    }
    if a.failure.is_some() || b.failure.is_some() {
        let words = both.map(|it| it.failure.as_deref().unwrap_or("measured"));
        return Some(Objection::new(Reason::SyncFailed, "sync", words));
    }
    if a.emulated || b.emulated {
        let words = both.map(|it| if it.emulated { "emulated" } else { "not emulated" });
        return Some(Objection::new(Reason::EmulatedCpu, "CPU", words));
    }
    if let (Some(one), Some(other)) = (a.unsynced_form, b.unsynced_form)
        && (one != other || one == UnsyncedForm::Unknown)
    {
        return Some(Objection::new(Reason::NotSyncedAcrossVersions, "test", [one, other].map(form_words)));
    }
    if let (Medium::Memory, Medium::Disk) | (Medium::Disk, Medium::Memory) = (a.medium, b.medium) {
        return Some(Objection::new(Reason::MemoryAgainstDisk, "files", both.map(|it| medium_word(it.medium))));
    }
    if let (Medium::Memory, Medium::Disk) | (Medium::Disk, Medium::Memory) = (a.data, b.data) {
        let words = both.map(|it| if it.data == Medium::Memory { "fit into RAM" } else { "on disk" });
        return Some(Objection::new(Reason::DataInMemoryAgainstDisk, "data", words));
    }
    match (&a.durability, &b.durability) {
        // A case known to lose commits is not compared with one that is not.
        (Some(one), Some(other))
            if one.class != other.class && [one, other].iter().any(|it| !may_keep_all(it.class)) =>
        {
            let words = [one, other].map(|it| format!("{} ({})", class_word(it.class), it.reason));
            Some(Objection::new(Reason::OtherDurability, "durability", words))
        }
        _ if both.iter().any(|it| it.value <= 0.0 || !it.value.is_finite()) => {
            let words = both.map(|it| if it.value > 0.0 { "measured" } else { "no operations" });
            Some(Objection::new(Reason::NothingDone, "operations", words))
        }
        _ => None,
    }
}

fn may_keep_all(class: DurabilityClass) -> bool {
    use DurabilityClass::{DeclaredStable, Flushed, NotApplicable, Unknown};
    matches!(class, NotApplicable | Flushed | DeclaredStable | Unknown)
}

/// What a figure gave up that the baseline's has: commits may be lost, a sync failed, or nothing was done.
pub fn gave_up(measure: &SideMeasure, baseline: &SideMeasure) -> Option<String> {
    let lossy = |of: &SideMeasure| of.durability.clone().filter(|known| !may_keep_all(known.class));
    let lost = lossy(measure).filter(|_| lossy(baseline).is_none());
    let lost = lost.map(|it| format!("commits may be lost: {} ({})", class_word(it.class), it.reason));
    let failed = measure.failure.clone().filter(|_| baseline.failure.is_none());
    let is_idle = measure.more_is_better() && measure.value <= 0.0 && baseline.value > 0.0;
    lost.or(failed.map(|why| format!("a sync failed: {why}"))).or(is_idle.then(|| "nothing was done".to_owned()))
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
