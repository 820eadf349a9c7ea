//! Probes as sides: rows that pg_test_fsync has too use that tool's keys, others use their own.

use super::facts::{Facts, medium};
use super::side::{
    ConditionKind, FigureKind, MeasureCondition, MeasureSpread, Medium, Side, SideMeasure, SideOrigin, UnsyncedForm,
};
use crate::analyse::findings::{CredibilityKind, Durability, DurabilityClass};
use crate::analyse::probe;
use crate::analyse::probe::findings::Credibility;
use crate::analyse::probe::rules::MOUNT_OPTION;
use crate::record::probe::{Family, ProbeRecord, RowRecord, RowSpec, Segment, Slice};
use crate::stats::interval::{TrialMean, mean_over_trials};
use crate::stats::ratio::BlockMean;
use crate::stats::slices;
use crate::units::Micros;

/// Major version for which a probe's credibility is evaluated; it does not affect the comparison.
const SERVER: u32 = 18;

pub fn side(argument: usize, label: &str, record: &ProbeRecord) -> Side {
    let (durability, medium, caveats) = judged(record);
    let mut measures = over_rounds("", &[(1, record)]);
    stamp(&mut measures, &durability, medium);
    bare(argument, label, record, measures, caveats)
}

/// The side of a folder that was probed in several rounds, alternating with other folders: rounds of the same name are
/// common blocks. `None` without a round.
pub fn side_of_rounds(argument: usize, label: &str, name: &str, rounds: &[ProbeRecord]) -> Option<Side> {
    let first = rounds.first()?;
    // The worst result of any round applies to all of them.
    let mut worst: Option<(Durability, Medium)> = None;
    for record in rounds {
        let (durability, medium, _) = judged(record);
        if worst.as_ref().is_none_or(|(known, _)| durability.class > known.class) {
            worst = Some((durability, medium));
        }
    }
    let (durability, medium) = worst?;
    let numbered: Vec<(u32, &ProbeRecord)> = (1..).zip(rounds).collect();
    let mut measures = over_rounds(name, &numbered);
    stamp(&mut measures, &durability, medium);
    let mut caveats: Vec<String> = rounds.iter().flat_map(|record| record.notes.clone()).collect();
    caveats.dedup();
    let total = Micros(rounds.iter().map(|record| record.elapsed_us).sum());
    caveats.push(format!("{} rounds, {total} in total: too short to show what happens once a minute", rounds.len()));
    Some(bare(argument, label, first, measures, caveats))
}

/// What a sync survives according to a probe, the storage of its files, and remarks on its figures.
fn judged(record: &ProbeRecord) -> (Durability, Medium, Vec<String>) {
    let found = probe::find(record, SERVER);
    let place = &record.place;
    let medium = match found.credibility.kind {
        CredibilityKind::Memory => Medium::Memory,
        _ => medium(place.mount.as_ref(), &place.devices),
    };
    let durability = durability(&found.credibility);
    let mut caveats: Vec<String> = found.credibility.headline.into_iter().collect();
    // Explanations of marks in the probe's own table do not apply here.
    caveats.extend(found.caveats.into_iter().filter(|caveat| caveat != probe::caveats::OF_MARKS));
    (durability, medium, caveats)
}

fn stamp(measures: &mut [SideMeasure], durability: &Durability, medium: Medium) {
    for measure in measures.iter_mut().filter(|measure| measure.absent.is_none()) {
        measure.durability = measure.unsynced_form.is_none().then(|| durability.clone());
        measure.medium = medium;
    }
}

fn bare(argument: usize, label: &str, record: &ProbeRecord, measures: Vec<SideMeasure>, caveats: Vec<String>) -> Side {
    let place = &record.place;
    let mut facts = Facts::default();
    facts.kernel(&place.kernel);
    facts.add("host.machine", place.hypervisor.clone().unwrap_or_default());
    if let Some(mount) = &place.mount {
        facts.mount("stack", mount);
    }
    facts.devices("stack", &place.devices);
    Side {
        argument,
        label: label.to_owned(),
        name: String::new(),
        origin: SideOrigin::Probe,
        facts: facts.texts(),
        measures,
        caveats,
        left_out: Vec::new(),
    }
}

/// Rows of numbered probes, each probe a trial of the run with this name; without durability and medium.
pub(super) fn over_rounds(run: &str, rounds: &[(u32, &ProbeRecord)]) -> Vec<SideMeasure> {
    let mut specs: Vec<&RowSpec> = Vec::new();
    for row in rounds.iter().flat_map(|(_, record)| &record.rows) {
        if !specs.iter().any(|spec| spec.id == row.spec.id) {
            specs.push(&row.spec);
        }
    }
    specs.into_iter().filter_map(|spec| over_rounds_one(run, rounds, spec)).collect()
}

fn over_rounds_one(run: &str, rounds: &[(u32, &ProbeRecord)], spec: &RowSpec) -> Option<SideMeasure> {
    let (mut failed, mut absent, mut ends) = (None, None, None);
    let mut means = Vec::new();
    for (number, record) in rounds {
        let Some(row) = record.rows.iter().find(|row| row.spec.id == spec.id) else { continue };
        failed = failed.or_else(|| failure(row));
        absent = absent.or_else(|| row.unavailable.clone());
        if let Some(rate) = slices::rate(&timed(&row.slices)) {
            means.push(BlockMean { block: *number, trial: mean(row, rate.per_s) });
            ends = rate.ends;
        }
    }
    if means.is_empty() {
        return absent.map(|absent| SideMeasure { absent: Some(absent), ..named(spec, 0.0) });
    }
    let all = mean_over_trials(&means.iter().map(|mean| mean.trial).collect::<Vec<TrialMean>>())?;
    let mut measure = named(spec, all.mean);
    measure.ends = if means.len() > 1 { all.ends } else { ends };
    measure.spread = MeasureSpread::Trials { run: run.to_owned(), means, slices: true };
    measure.failure = failed;
    Some(measure)
}

/// Durability class of a commit that follows from a probe's credibility.
fn durability(credibility: &Credibility) -> Durability {
    // A mount option that disables barriers is a fact; a count without flushes is only a suspicion, as in a run.
    let held_back = credibility.rules.iter().any(|rule| rule.name == MOUNT_OPTION);
    let class = match credibility.kind {
        CredibilityKind::Memory => DurabilityClass::Volatile,
        CredibilityKind::NoFlushSeen if held_back => DurabilityClass::Volatile,
        CredibilityKind::Flushed => DurabilityClass::Flushed,
        CredibilityKind::DeclaredStable => DurabilityClass::DeclaredStable,
        CredibilityKind::NoFlushSeen
        | CredibilityKind::Implausible
        | CredibilityKind::Unexplained
        | CredibilityKind::Unknown => DurabilityClass::Unknown,
    };
    Durability::of(class, credibility.reason.clone())
}

/// Operations and seconds of each slice.
fn timed(slices: &[Slice]) -> Vec<(u64, f64)> {
    slices.iter().map(|slice| (slice.operations, slice.elapsed_ns as f64 / 1e9)).collect()
}

/// Rate of a row, with the error estimated from its slices.
fn mean(row: &RowRecord, per_s: f64) -> TrialMean {
    TrialMean { mean: per_s, within: slices::within(&timed(&row.slices)) }
}

/// How a row ended early, in words.
fn failure(row: &RowRecord) -> Option<String> {
    row.failure.as_ref().map(|failure| format!("{} failed: {}", failure.call, failure.message))
}

/// The row's measure, with its name.
fn named(spec: &RowSpec, per_s: f64) -> SideMeasure {
    let size = || vec![MeasureCondition::named(ConditionKind::WriteSize, Some(kilobytes(u64::from(spec.write_bytes))))];
    let label = spec.label.trim();
    let (family, conditions, item) = match spec.family {
        Family::OneWrite => ("pg_test_fsync/one write", size(), label.to_owned()),
        Family::TwoWrites => ("pg_test_fsync/two writes", size(), label.to_owned()),
        Family::OpenSyncSizes => {
            ("pg_test_fsync/open_sync sizes", Vec::new(), pieces(u64::from(spec.writes), u64::from(spec.write_bytes)))
        }
        Family::Descriptor => ("pg_test_fsync/descriptor", size(), label.to_owned()),
        Family::NotSynced => ("pg_test_fsync/not synced", size(), label.to_owned()),
        Family::Wal => ("wal", size(), wal_item(spec)),
        Family::Newer => ("newer", size(), label.to_owned()),
    };
    let mut measure = SideMeasure::new(family, conditions, &item, FigureKind::Rate, "ops/sec", per_s);
    if spec.family == Family::NotSynced {
        measure.unsynced_form = Some(UnsyncedForm::KeepsOpen);
    }
    measure
}

/// Name of a WAL row: its label states unusual conditions; plain rows use a recycled segment.
fn wal_item(spec: &RowSpec) -> String {
    let plain = spec.segment == Some(Segment::Recycled) && !spec.direct && spec.writers <= 1;
    let label = spec.label.trim();
    // The number of writers in a group is part of its label.
    if plain { label.split(',').next().unwrap_or(label).to_owned() } else { label.to_owned() }
}

/// A row of pg_test_fsync's test of sizes: `2 * 8 kB`.
pub(super) fn pieces(writes: u64, bytes: u64) -> String {
    format!("{writes} * {}", kilobytes(bytes))
}

/// A size in pg_test_fsync's notation: `8 kB`.
pub(super) fn kilobytes(bytes: u64) -> String {
    if bytes.is_multiple_of(1024) { format!("{} kB", bytes / 1024) } else { format!("{bytes} B") }
}
