//! Rules on rates of synced writes: what memory, a cache and a turning disk can do.

use super::findings::{Remark, Weight};
use super::rules::Rule;
use super::select::{Found, rows_of_trial, synced};
use super::words::{milliseconds, rate as shown};
use crate::analyse::compare::side::UnsyncedForm;
use crate::record::durability::memory_filesystem;
use crate::record::imported::{ImportRecord, ImportedCase, ImportedTrial};
use crate::units::significant;

/// No device that is not memory is known to sync more often for one writer.
const MOST_SYNCS_PER_S: f64 = 100_000.0;
/// NAND without power-loss protection needs longer for a flush, microseconds.
const FASTEST_FLUSH_US: f64 = 100.0;
/// One turn at 15 000 rpm, the fastest disks sold, a tenth less for the clock; microseconds.
const SHORTEST_TURN_US: f64 = 0.9 * 60e6 / 15_000.0;
/// One turn and a half at 5400 rpm, the slowest disks in use; microseconds.
const LONGEST_WAIT_US: f64 = 1.5 * 60e6 / 5400.0;
/// Two synced writes cost about twice one. Beyond this many times, one of the two figures is of another thing.
const ODD_COST: f64 = 4.0;
/// Below this, two writes that are each synced are not two syncs.
const TWO_SYNCS_COST: f64 = 1.5;
/// An fsync that costs this many times an fdatasync writes more than the data.
const JOURNAL_COST: f64 = 1.5;
/// A wait of an operation beside which the cost of each write in it counts for little.
const WAIT_OVER_WRITE: f64 = 5.0;

/// What the rates of a trial say.
pub(super) fn of_trial(record: &ImportRecord, case: &ImportedCase, trial: &ImportedTrial) -> Vec<Remark> {
    let told = fact(case, "postgresql.version").or(record.origin.postgresql.as_deref());
    let all = [
        too_many(case, trial),
        no_slower_than_unsynced(case, trial, told),
        faster_than_a_turn(case, trial),
        two_writes(case, trial, "open_sync"),
        two_writes(case, trial, "open_datasync"),
        one_wait(case, trial),
        fast_flush(case, trial),
        journal(case, trial),
    ];
    all.into_iter().flatten().collect()
}

/// A rate of synced writes that no storage is known to reach, in words.
pub(in crate::analyse) fn beyond_storage(case: &ImportedCase) -> Option<String> {
    let (_, method, rate) =
        case.trials.iter().filter_map(|trial| fastest(case, trial)).find(|it| it.2 > MOST_SYNCS_PER_S)?;
    Some(format!("{method} ran at {} a second, which no storage that keeps data is known to do", shown(rate)))
}

/// The fastest row of one synced write.
fn fastest<'a>(case: &'a ImportedCase, trial: &'a ImportedTrial) -> Option<(Found<'a>, &'a str, f64)> {
    synced(rows_of_trial(case, trial), "one write").max_by(|a, b| a.2.total_cmp(&b.2))
}

fn rate_of<'a>(
    case: &'a ImportedCase,
    trial: &'a ImportedTrial,
    test: &'a str,
    method: &str,
) -> Option<(Found<'a>, f64)> {
    synced(rows_of_trial(case, trial), test).find(|(_, of, _)| *of == method).map(|(found, _, rate)| (found, rate))
}

fn fact<'a>(case: &'a ImportedCase, key: &str) -> Option<&'a str> {
    case.facts.get(key).map(String::as_str)
}

/// Rates that only memory reaches.
fn too_many(case: &ImportedCase, trial: &ImportedTrial) -> Option<Remark> {
    let rule = Rule {
        name: "too_many_syncs",
        weight: Weight::Suspicion,
        source: "the fastest published devices sync 47 000 times a second for one writer, tmpfs 820 000 and more",
    };
    let (row, method, rate) = fastest(case, trial).filter(|(.., rate)| *rate > MOST_SYNCS_PER_S)?;
    let why = match (fact(case, "stack.filesystem"), fact(case, "zfs.sync")) {
        (Some(kind), _) if memory_filesystem(kind).is_some() => {
            format!("{kind} keeps its files in memory, and nothing is synced")
        }
        (_, Some("disabled")) => "with sync=disabled nothing is synced before the call returns".to_owned(),
        _ => "it is memory, or nothing is synced".to_owned(),
    };
    let sentence =
        format!("{method} ran at {} a second, which no storage that keeps data is known to do: {why}", shown(rate));
    rule.says(&[row], Some((rate, MOST_SYNCS_PER_S, "ops/s")), sentence)
}

/// A sync that costs nothing. What the row without a sync does beside the write depends on the version; where that is not
/// known, nothing follows from it.
fn no_slower_than_unsynced(case: &ImportedCase, trial: &ImportedTrial, told: Option<&str>) -> Option<Remark> {
    let unsynced = rows_of_trial(case, trial).find(|found| found.label("test") == Some("not synced"))?;
    let without = unsynced.value("rate")?;
    let (row, method, rate) = fastest(case, trial).filter(|(.., rate)| *rate >= without)?;
    let (source, why) = match UnsyncedForm::of(unsynced.output.version.as_deref(), told) {
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
    let rule = Rule { name: "no_slower_than_unsynced", weight: Weight::Suspicion, source };
    let why = why.replace("{}", &shown(without));
    let sentence = format!("a write with {method} ({} a second) is {why}", shown(rate));
    rule.says(&[row, unsynced], Some((rate, without, "ops/s")), sentence)
}

/// A disk that turns, and syncs faster than that.
fn faster_than_a_turn(case: &ImportedCase, trial: &ImportedTrial) -> Option<Remark> {
    let rule = Rule {
        name: "faster_than_a_turn",
        weight: Weight::Suspicion,
        source: "15 000 rpm, the fastest disks sold, are a turn in 4.0 ms; 7200 rpm 8.3 ms, 5400 rpm 11.1 ms",
    };
    if fact(case, "stack.media") != Some("rotating") {
        return None;
    }
    let (row, method, rate) = fastest(case, trial).filter(|(.., rate)| *rate <= MOST_SYNCS_PER_S)?;
    let took = 1e6 / rate;
    if took >= SHORTEST_TURN_US {
        return None;
    }
    let sentence = format!(
        "{method} took {}, less than a turn of any disk, and more disks make no single sync faster: a write cache \
         acknowledged it, and whether that is protected decides what it is worth",
        milliseconds(took)
    );
    rule.says(&[row], Some((took, SHORTEST_TURN_US, "us")), sentence)
}

/// Faster than flash without protection empties its cache: it is protected, there is none, or the flush went nowhere.
fn fast_flush(case: &ImportedCase, trial: &ImportedTrial) -> Option<Remark> {
    let rule = Rule {
        name: "fast_flush",
        weight: Weight::Information,
        source: "published flushes of flash without power-loss protection take 0.6 ms and more; 0.1 ms leaves room",
    };
    if fact(case, "stack.media") == Some("rotating") {
        return None;
    }
    let (row, method, rate) = fastest(case, trial).filter(|(.., rate)| *rate <= MOST_SYNCS_PER_S)?;
    let took = 1e6 / rate;
    if took >= FASTEST_FLUSH_US {
        return None;
    }
    let sentence =
        format!("{method} took {}: either the write cache is not volatile, or it is not emptied", milliseconds(took));
    rule.says(&[row], Some((took, FASTEST_FLUSH_US, "us")), sentence)
}

/// Two writes that are each synced, against one.
fn two_writes(case: &ImportedCase, trial: &ImportedTrial, method: &str) -> Option<Remark> {
    let (one_row, one) = rate_of(case, trial, "one write", method)?;
    let (two_row, two) = rate_of(case, trial, "two writes", method)?;
    if one > MOST_SYNCS_PER_S {
        return None;
    }
    let (cost, took) = (one / two, 1e6 / two);
    let source = "each write through O_SYNC or O_DSYNC is a sync of its own (open(2)): two cost about twice one";
    if cost < TWO_SYNCS_COST {
        let rule = Rule { name: "two_syncs_do_not_halve", weight: Weight::Suspicion, source };
        let sentence =
            format!("two {method} writes cost {} times one: they are not synced one by one", significant(cost));
        return rule.says(&[two_row, one_row], Some((cost, TWO_SYNCS_COST, "times one write")), sentence);
    }
    if cost < ODD_COST {
        return None;
    }
    let rule = Rule { name: "one_write_from_a_cache", weight: Weight::Suspicion, source };
    let per_s = |rate: f64| format!("{}/s", shown(rate));
    let speed = match (SHORTEST_TURN_US..=LONGEST_WAIT_US).contains(&took) {
        true => "the speed of a bare rotating disk (a turn takes 4.0 ms at 15 000 rpm, 11.1 ms at 5400)",
        false => "what storage without a cache takes",
    };
    let sentence = format!(
        "two {method} writes ran at {}, {} each time: {speed}; one write at {} took {} and came back from a cache",
        per_s(two),
        milliseconds(took),
        per_s(one),
        milliseconds(1e6 / one)
    );
    rule.says(&[two_row, one_row], Some((cost, ODD_COST, "times one write")), sentence)
}

/// Operations of several writes that wait once, not once a write.
fn one_wait(case: &ImportedCase, trial: &ImportedTrial) -> Option<Remark> {
    let rule = Rule {
        name: "one_wait_an_operation",
        weight: Weight::Information,
        source: "least squares of the time of an operation over its number of writes",
    };
    let sizes = rows_of_trial(case, trial).filter(|found| found.label("test") == Some("open_sync sizes"));
    let points: Vec<(Found<'_>, f64, f64)> = sizes
        .filter_map(|found| Some((found, found.label("writes")?.parse().ok()?, 1e6 / found.value("rate")?)))
        .filter(|(_, writes, us): &(_, f64, f64)| *writes >= 2.0 && us.is_finite())
        .collect();
    if points.len() < 3 {
        return None;
    }
    let n = points.len() as f64;
    let mean = |of: fn(&(Found<'_>, f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|it| it.1), mean(|it| it.2));
    let squares: f64 = points.iter().map(|it| (it.1 - x).powi(2)).sum();
    let slope = points.iter().map(|it| (it.1 - x) * (it.2 - y)).sum::<f64>() / squares;
    let wait = y - slope * x;
    if slope <= 0.0 || wait < WAIT_OVER_WRITE * slope || wait < SHORTEST_TURN_US {
        return None;
    }
    let rows: Vec<Found<'_>> = points.iter().map(|it| it.0).collect();
    let most = points.iter().map(|it| it.1).fold(0.0, f64::max);
    let sentence = format!(
        "from 2 to {most} open_sync writes an operation takes {} and {} for each write: it waits for the disk once, not at \
         every write",
        milliseconds(wait),
        milliseconds(slope)
    );
    rule.says(&rows, Some((wait, WAIT_OVER_WRITE * slope, "us")), sentence)
}

/// What an fsync costs over an fdatasync.
fn journal(case: &ImportedCase, trial: &ImportedTrial) -> Option<Remark> {
    let rule = Rule {
        name: "journal",
        weight: Weight::Information,
        source: "fdatasync(2): it leaves out metadata that reading does not need",
    };
    let (fdatasync_row, fdatasync) = rate_of(case, trial, "one write", "fdatasync")?;
    let (fsync_row, fsync) = rate_of(case, trial, "one write", "fsync")?;
    let cost = fdatasync / fsync;
    if cost < JOURNAL_COST {
        return None;
    }
    let sentence = format!(
        "fsync costs {} times fdatasync: it writes metadata too, as a commit of the journal does",
        significant(cost)
    );
    rule.says(&[fdatasync_row, fsync_row], Some((cost, JOURNAL_COST, "times fdatasync")), sentence)
}
