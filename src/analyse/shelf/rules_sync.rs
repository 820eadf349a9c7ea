//! Rules on rates of synced writes: limits of memory, caches and rotating disks.

use crate::analyse::compare::side::UnsyncedForm;
use crate::analyse::imported::beyond::{MOST_SYNCS_PER_S, fastest};
use crate::analyse::imported::select::{FoundRow, rows_of_trial};
use crate::analyse::imported::words::{milliseconds, rate as shown};
use crate::analyse::shelf::findings::{RemarkWeight, RuleRemark};
use crate::analyse::shelf::rule::{rate_of, remark};
use crate::record::durability::memory_filesystem;
use crate::record::imported::{ImportRecord, ImportedCase, ImportedTrial};
use crate::units::significant;

/// One rotation at 15 000 rpm, the fastest disks sold, minus a tenth for the clock; microseconds.
const SHORTEST_TURN_US: f64 = 0.9 * 60e6 / 15_000.0;
/// Two synced writes cost about twice one. Beyond this ratio, the two figures measure different things.
const ODD_COST: f64 = 4.0;
/// Below this ratio, two synced writes cost less than two syncs do.
const TWO_SYNCS_COST: f64 = 1.5;

/// Remarks on the rates of a trial.
pub(super) fn of_trial(record: &ImportRecord, case: &ImportedCase, trial: &ImportedTrial) -> Vec<RuleRemark> {
    let version = case.fact("postgresql.version").or(record.origin.postgresql.as_deref());
    let all = [
        too_many(case, trial),
        no_slower_than_unsynced(case, trial, version),
        faster_than_a_turn(case, trial),
        two_writes(case, trial, "open_sync"),
        two_writes(case, trial, "open_datasync"),
    ];
    all.into_iter().flatten().collect()
}

/// Rates that only memory can reach.
fn too_many(case: &ImportedCase, trial: &ImportedTrial) -> Option<RuleRemark> {
    let source = "the fastest published devices sync 47 000 times a second for one writer, tmpfs 820 000 and more";
    let (row, method, rate) = fastest(case, trial).filter(|(.., rate)| *rate > MOST_SYNCS_PER_S)?;
    let why = match (case.fact("stack.filesystem"), case.fact("zfs.sync")) {
        (Some(kind), _) if memory_filesystem(kind).is_some() => {
            format!("{kind} keeps its files in memory, and nothing is synced")
        }
        (_, Some("disabled")) => "with sync=disabled nothing is synced before the call returns".to_owned(),
        _ => "it is memory, or nothing is synced".to_owned(),
    };
    let sentence = format!("{method} ran at {} per second, faster than any known durable storage: {why}", shown(rate));
    remark("too_many_syncs", RemarkWeight::Suspicion, source, &[row], sentence)
}

/// A sync that costs nothing. The unsynced row does other work too, depending on the version; if that is unknown,
/// nothing follows.
fn no_slower_than_unsynced(case: &ImportedCase, trial: &ImportedTrial, version: Option<&str>) -> Option<RuleRemark> {
    let unsynced = rows_of_trial(case, trial).find(|found| found.label("test") == Some("not synced"))?;
    let without = unsynced.value("rate")?;
    let (row, method, rate) = fastest(case, trial).filter(|(.., rate)| *rate >= without)?;
    let (source, why) = match UnsyncedForm::of(unsynced.output.version.as_deref(), version) {
        UnsyncedForm::OpensEachTime => (
            "until 13 pg_test_fsync opens and closes the file for each write that it does not sync",
            "faster than one that is not synced ({}) but opens its file each time: the sync costs less than an open",
        ),
        UnsyncedForm::KeepsOpen => (
            "since 14 pg_test_fsync keeps the file open for writes that it does not sync, as for those that it syncs",
            "no slower than one that is not synced ({}): the sync costs nothing",
        ),
        UnsyncedForm::Unknown => return None,
    };
    let why = why.replace("{}", &shown(without));
    let sentence = format!("a write with {method} ({} a second) is {why}", shown(rate));
    remark("no_slower_than_unsynced", RemarkWeight::Suspicion, source, &[row, unsynced], sentence)
}

/// A rotating disk that syncs faster than it rotates.
fn faster_than_a_turn(case: &ImportedCase, trial: &ImportedTrial) -> Option<RuleRemark> {
    let source =
        "one rotation takes 4.0 ms at 15 000 rpm (the fastest disks sold), 8.3 ms at 7200 rpm, 11.1 ms at 5400 rpm";
    if case.fact("stack.media") != Some("rotating") {
        return None;
    }
    let (row, method, rate) = fastest(case, trial).filter(|(.., rate)| *rate <= MOST_SYNCS_PER_S)?;
    let took = Some(1e6 / rate).filter(|took| *took < SHORTEST_TURN_US)?;
    let sentence = format!(
        "{method} took {}, less than one rotation of any disk, and more disks do not speed up a single sync: something \
         other than the platter acknowledged it (a write cache, a log device, memory); which one, and whether it is \
         durable, is unknown",
        milliseconds(took)
    );
    remark("faster_than_a_turn", RemarkWeight::Suspicion, source, &[row], sentence)
}

/// Two synced writes against one. The test of sizes may have the same row again; if the two disagree, or the cost is
/// not that of two syncs, it is unknown what was measured.
fn two_writes(case: &ImportedCase, trial: &ImportedTrial, method: &str) -> Option<RuleRemark> {
    let (one_row, one) = rate_of(rows_of_trial(case, trial), "one write", method)?;
    let (two_row, two) = rate_of(rows_of_trial(case, trial), "two writes", method)?;
    let source = "each write through O_SYNC or O_DSYNC is a sync of its own (open(2)): two cost about twice one";
    let sizes = [("test", "open_sync sizes"), ("writes", "2"), ("method", method)];
    let size = two_row.label("write_bytes");
    let again = rows_of_trial(case, trial).find(|row| row.is(&sizes) && row.label("write_bytes") == size);
    let again = again.and_then(|row| Some((row, one / row.value("rate").filter(|rate| *rate > 0.0)?)));
    let cost = one / two;
    let mut costs = std::iter::once(cost).chain(again.map(|(_, other)| other));
    if one > MOST_SYNCS_PER_S || costs.all(|cost| kind_of(cost) == (true, false)) {
        return None;
    }
    let times = format!("two {method} writes cost {} times one", significant(cost));
    let (name, rest) = match again {
        Some((_, other)) if kind_of(other) != kind_of(cost) => {
            let rest = format!(" in one row and {} times in another: which is right is unknown", significant(other));
            ("two_writes_disagree", rest)
        }
        _ if cost < TWO_SYNCS_COST => {
            let rest = ", two syncs about twice: whether each write was synced is unknown";
            ("two_writes_cost_little", rest.to_owned())
        }
        _ => {
            let [one, two] = [one, two].map(|rate| format!("{}/s ({} each)", shown(rate), milliseconds(1e6 / rate)));
            let why = "why one write is so much faster is unknown (possibly a cache)";
            ("two_writes_cost_much", format!(": one at {one}, two at {two}; {why}"))
        }
    };
    let rows: Vec<FoundRow<'_>> = [two_row, one_row].into_iter().chain(again.map(|it| it.0)).collect();
    remark(name, RemarkWeight::Suspicion, source, &rows, times + &rest)
}

/// Whether two writes cost as much as two syncs, and whether they cost more than these explain.
fn kind_of(cost: f64) -> (bool, bool) {
    (cost >= TWO_SYNCS_COST, cost >= ODD_COST)
}
