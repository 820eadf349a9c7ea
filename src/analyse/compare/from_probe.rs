//! Probes as sides: rows that pg_test_fsync has too use that tool's keys, others use their own.

use super::facts::{Facts, medium};
use super::side::{
    ConditionKind, FigureKind, MeasureCondition, MeasureSpread, Medium, Side, SideMeasure, SideOrigin, UnsyncedForm,
};
use crate::analyse::findings::groups::by_key;
use crate::analyse::findings::{CredibilityKind, Durability, DurabilityClass, names};
use crate::analyse::probe;
use crate::analyse::probe::findings::Credibility;
use crate::analyse::probe::rules::MOUNT_OPTION;
use crate::record::probe::{Family, ProbeRecord, RowRecord, RowSpec, Segment};
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
    // The worst result of any round applies to all of them; of equals the first.
    let worst = rounds.iter().map(judged).reduce(|worst, one| if one.0.class > worst.0.class { one } else { worst });
    let (durability, medium, _) = worst?;
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
    let (label, origin, facts) = (label.to_owned(), SideOrigin::Probe, facts.texts());
    Side { argument, label, origin, facts, measures, caveats, ..Side::default() }
}

/// Rows of numbered probes, each probe a trial of the run with this name; without durability and medium.
pub(super) fn over_rounds(run: &str, rounds: &[(u32, &ProbeRecord)]) -> Vec<SideMeasure> {
    let rows =
        rounds.iter().flat_map(|(number, record)| record.rows.iter().map(move |row| (&row.spec.id, (*number, row))));
    by_key(rows).iter().filter_map(|(_, rows)| over_trials(run, rows)).collect()
}

/// One row over numbered probes.
fn over_trials(run: &str, rows: &[(u32, &RowRecord)]) -> Option<SideMeasure> {
    let spec = &rows.first()?.1.spec;
    let (mut means, mut ends) = (Vec::new(), None);
    for (block, row) in rows {
        let timed: Vec<(u64, f64)> =
            row.slices.iter().map(|slice| (slice.operations, slice.elapsed_ns as f64 / 1e9)).collect();
        if let Some(rate) = slices::rate(&timed) {
            let trial = TrialMean { mean: rate.per_s, within: slices::within(&timed) };
            means.push(BlockMean { block: *block, trial });
            ends = rate.ends;
        }
    }
    if means.is_empty() {
        let absent = rows.iter().find_map(|(_, row)| row.unavailable.clone())?;
        return Some(SideMeasure { absent: Some(absent), ..named(spec, 0.0) });
    }
    let all = mean_over_trials(&means.iter().map(|mean| mean.trial).collect::<Vec<TrialMean>>())?;
    let failure = rows.iter().find_map(|(_, row)| row.failure.as_ref());
    Some(SideMeasure {
        ends: if means.len() > 1 { all.ends } else { ends },
        spread: MeasureSpread::Trials { run: run.to_owned(), means, slices: true },
        failure: failure.map(|failure| format!("{} failed: {}", failure.call, failure.message)),
        ..named(spec, all.mean)
    })
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

/// The row's measure, with its name.
fn named(spec: &RowSpec, per_s: f64) -> SideMeasure {
    let bytes = u64::from(spec.write_bytes);
    let family = match spec.family {
        Family::Wal | Family::Newer => names::of_family(spec.family),
        theirs => format!("pg_test_fsync/{}", names::of_family(theirs)),
    };
    let size = MeasureCondition::named(ConditionKind::WriteSize, Some(kilobytes(bytes)));
    let (conditions, item) = match spec.family {
        Family::OpenSyncSizes => (Vec::new(), pieces(u64::from(spec.writes), bytes)),
        Family::Wal => (vec![size], wal_item(spec)),
        _ => (vec![size], spec.label.trim().to_owned()),
    };
    let unsynced_form = (spec.family == Family::NotSynced).then_some(UnsyncedForm::KeepsOpen);
    SideMeasure { unsynced_form, ..SideMeasure::new(&family, conditions, &item, FigureKind::Rate, "ops/sec", per_s) }
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
