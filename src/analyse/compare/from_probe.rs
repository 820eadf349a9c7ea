//! A probe as a side: the rows that pg_test_fsync has under the keys of that tool, the others under keys of their own.

use super::facts::{Facts, medium};
use super::side::{Condition, ConditionKind, Figure, Measure, Medium, Origin, Side, Spread, UnsyncedForm};
use crate::analyse::findings::{Durability, DurabilityClass};
use crate::analyse::probe;
use crate::analyse::probe::findings::{ProbeVerdict, VerdictKind};
use crate::record::probe::{Family, ProbeRecord, RowRecord, RowSpec, Segment, Slice};
use crate::stats::autocorrelation::within_independent;
use crate::stats::interval::TrialMean;
use crate::stats::ratio::BlockMean;
use crate::stats::slices;

/// Major version that a probe's verdict is asked for; it plays no part in what is compared.
const SERVER: u32 = 18;

/// The side of a probe.
#[must_use]
pub fn side(argument: usize, label: &str, record: &ProbeRecord) -> Side {
    let found = probe::find(record, SERVER);
    let place = &record.place;
    let medium = match found.verdict.kind {
        VerdictKind::Memory => Medium::Memory,
        _ => medium(place.mount.as_ref(), &place.devices),
    };
    let durability = durability(&found.verdict);
    let measures = record.rows.iter().filter_map(|row| measure(row, &durability, medium)).collect();
    let mut facts = Facts::default();
    facts.kernel(&place.kernel);
    facts.add("host.machine", place.hypervisor.clone().unwrap_or_default());
    if let Some(mount) = &place.mount {
        facts.mount("stack", mount);
    }
    facts.devices("stack", &place.devices);
    let mut caveats: Vec<String> = found.verdict.headline.into_iter().collect();
    // What explains a mark in the probe's own table explains nothing here.
    caveats.extend(found.caveats.into_iter().filter(|caveat| !caveat.contains("marked ~")));
    Side {
        argument,
        label: label.to_owned(),
        name: String::new(),
        origin: Origin::Probe,
        facts: facts.texts(),
        measures,
        caveats,
        left_out: Vec::new(),
    }
}

/// A probe's verdict as the class of a commit.
fn durability(verdict: &ProbeVerdict) -> Durability {
    let class = match verdict.kind {
        VerdictKind::Memory | VerdictKind::NoFlushSeen => DurabilityClass::Volatile,
        VerdictKind::LooksHonest => DurabilityClass::Flushed,
        VerdictKind::LooksProtected | VerdictKind::Implausible | VerdictKind::Unknown => DurabilityClass::Unknown,
    };
    Durability { class, reason: verdict.reason.clone() }
}

fn measure(row: &RowRecord, durability: &Durability, medium: Medium) -> Option<Measure> {
    if let Some(why) = &row.unavailable {
        return Some(Measure { absent: Some(why.clone()), ..named(&row.spec, 0.0) });
    }
    let timed = timed(&row.slices);
    let rate = slices::rate(&timed)?;
    let mut measure = named(&row.spec, rate.per_s);
    measure.ends = rate.ends;
    measure.spread = Spread::Slices(BlockMean { block: 1, trial: mean(row, rate.per_s) });
    measure.medium = medium;
    let is_synced = row.spec.family != Family::NotSynced;
    measure.durability = is_synced.then(|| durability.clone());
    measure.failure = failure(row);
    Some(measure)
}

/// Operations and seconds of each slice.
pub(super) fn timed(slices: &[Slice]) -> Vec<(u64, f64)> {
    slices.iter().map(|slice| (slice.operations, slice.elapsed_ns as f64 / 1e9)).collect()
}

/// The rate of a row with the error that its slices tell.
pub(super) fn mean(row: &RowRecord, per_s: f64) -> TrialMean {
    let rates: Vec<f64> =
        timed(&row.slices).iter().map(|(done, s)| *done as f64 / s).filter(|rate| rate.is_finite()).collect();
    TrialMean { mean: per_s, within: within_independent(&rates) }
}

/// How a row ended early, in words.
pub(super) fn failure(row: &RowRecord) -> Option<String> {
    row.failure.as_ref().map(|failure| format!("{} failed: {}", failure.call, failure.message))
}

/// The row's measure under its name.
pub(super) fn named(spec: &RowSpec, per_s: f64) -> Measure {
    let size = || vec![Condition::named(ConditionKind::WriteSize, Some(kilobytes(u64::from(spec.write_bytes))))];
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
    let mut measure = Measure::new(family, conditions, &item, Figure::Rate, "ops/s", per_s);
    if spec.family == Family::NotSynced {
        measure.unsynced_form = Some(UnsyncedForm::KeepsOpen);
    }
    measure
}

/// What a WAL row is called: its label says what is unusual, the plain ones walk through a recycled segment.
fn wal_item(spec: &RowSpec) -> String {
    let plain = spec.segment == Some(Segment::Recycled) && !spec.direct && spec.writers <= 1;
    let label = spec.label.trim();
    // The writers of a group are part of its label.
    if plain { label.split(',').next().unwrap_or(label).to_owned() } else { label.to_owned() }
}

/// A row of pg_test_fsync's test of sizes: `2 * 8 kB`.
pub(super) fn pieces(writes: u64, bytes: u64) -> String {
    format!("{writes} * {}", kilobytes(bytes))
}

/// A size as pg_test_fsync speaks of it: `8 kB`.
pub(super) fn kilobytes(bytes: u64) -> String {
    if bytes.is_multiple_of(1024) { format!("{} kB", bytes / 1024) } else { format!("{bytes} B") }
}
