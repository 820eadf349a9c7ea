//! Share of the synced writes that a single writer gets from a stack which arrives at the clients as commits.
//!
//! Both figures must come from one run and one stack: commits from a case with a server, synced writes from a `sync`
//! case on the stack of the WAL. A device may do more than a single writer gets, and one flush may serve the commits of
//! several clients: the share is a yardstick, not an efficiency, and its sentence says so.

use crate::analyse::case::measures::MeasureSums;
use crate::analyse::case::strata::{COMMIT, noun};
use crate::analyse::case::sums::CaseSums;
use crate::analyse::case::synced::SyncCost;
use crate::analyse::findings::remark::per_cent;
use crate::analyse::findings::{Estimate, FlushShare};
use crate::record::operation::{Operation, Writes};
use crate::stats::ratio::{Ratio, ratio};
use crate::units::{count, significant};

/// Share of one case; `None` without a server, if commits wait for no flush, if the counted operations are not commits,
/// or if no `sync` case has the method in force on the stack of the WAL.
pub fn of(case: &CaseSums, cases: &[CaseSums]) -> Option<FlushShare> {
    case.spec.postgres.as_ref()?;
    let operation = case.operation.as_ref()?;
    let noun = writing_noun(case, operation)?;
    // A commit then waits for no flush, so the figure would say nothing about the stack.
    if is_off(case, "fsync") || is_off(case, "synchronous_commit") {
        return None;
    }
    let method = setting(case, "wal_sync_method")?;
    let (sync_case, synced) = sync_of(case, cases, method)?;
    let main = case.measures.first()?;
    let (commits, syncs) = (main.estimate()?, synced.estimate()?);
    let share = share(&commits, &syncs, ratio(&main.rates, &synced.rates)?)?;
    let mut found = FlushShare {
        sentence: String::new(),
        clients: operation.clients,
        commits,
        method: method.to_owned(),
        syncs,
        sync_case: sync_case.spec.id.clone(),
        share,
    };
    found.sentence = sentence(&found, noun, case.spec.stack.wal.is_some());
    Some(found)
}

/// Quotient of the two rates as shown, with the relative error of the trial comparison's ratio (if one of them lacks a
/// block, from the other blocks).
fn share(commits: &Estimate, syncs: &Estimate, compared: Ratio) -> Option<Estimate> {
    let value = commits.value / syncs.value;
    let interval = compared.interval.map(|ends| (value * ends.0 / compared.value, value * ends.1 / compared.value));
    (value.is_finite() && compared.value > 0.0)
        .then(|| Estimate::of(value, interval, commits.trials.min(syncs.trials) as usize))
}

/// Name of an operation that is known to write.
fn writing_noun<'a>(case: &CaseSums, operation: &'a Operation) -> Option<&'a str> {
    let read_only = case.strata.read_only();
    let noun = noun(&case.spec, operation, read_only);
    (operation.writes != Writes::Never && (noun == COMMIT || read_only == Some(false))).then_some(noun)
}

/// A setting that all trials agree on.
fn setting<'a>(case: &'a CaseSums, name: &str) -> Option<&'a str> {
    let mut values = case.trials.iter().map(|trial| trial.server.as_ref()?.key_settings.get(name).map(String::as_str));
    let first = values.next()??;
    values.all(|value| value == Some(first)).then_some(first)
}

/// True if the setting was off in any trial.
fn is_off(case: &CaseSums, name: &str) -> bool {
    let mut servers = case.trials.iter().filter_map(|trial| trial.server.as_ref());
    servers.any(|server| server.key_settings.get(name).is_some_and(|value| value == "off"))
}

/// The `sync` case on the stack of the WAL that shares the most axes with `case`, the first in the plan's order among
/// equals, and its measure for `method`.
fn sync_of<'a>(case: &CaseSums, cases: &'a [CaseSums], method: &str) -> Option<(&'a CaseSums, &'a MeasureSums)> {
    // Without a server, a measure named after a method measures synced writes.
    let fitting = cases.iter().filter(|other| other.spec.postgres.is_none() && is_stack_of_wal(case, other));
    let measured = fitting.filter_map(|other| {
        let measure = other.measures.iter().find(|measure| measure.found.name == method)?;
        (!measure.rates.is_empty()).then_some((other, measure))
    });
    // `max_by_key` returns the last of equals; reversed, that is the plan's first.
    measured.collect::<Vec<_>>().into_iter().rev().max_by_key(|(other, _)| {
        other.spec.axes.iter().filter(|(axis, value)| case.spec.axes.get(*axis) == Some(value)).count()
    })
}

/// True if a case without a server runs on the storage of another case's WAL.
fn is_stack_of_wal(case: &CaseSums, synced: &CaseSums) -> bool {
    let (own, other) = (&case.spec.stack, &synced.spec.stack);
    own.wal_alone() == *other || own.wal_stack.as_ref() == Some(&other.name)
}

/// Cost of one sync on the storage of a case's WAL, if a `sync` case of the run measured it.
pub fn cost_of(case: &CaseSums, cases: &[CaseSums]) -> Option<SyncCost> {
    case.spec.postgres.as_ref()?;
    let mut fitting = cases.iter().filter(|other| other.spec.postgres.is_none() && is_stack_of_wal(case, other));
    fitting.find_map(|other| Some(SyncCost { levels: other.synced.flushes_per_sync()?, case: other.spec.id.clone() }))
}

/// "2477 commits/s by 8 clients are 58 % (30 to 110 %) of the 4368 fdatasync/s that one writer gets from this stack
/// alone".
fn sentence(found: &FlushShare, noun: &str, is_wal_alone: bool) -> String {
    let share = &found.share;
    let ends = share.low.zip(share.high).map(|(low, high)| format!(" ({} to {} %)", per_cent(low), per_cent(high)));
    let text = format!(
        "{} {noun}s/s by {} are {} %{} of the {} {}/s that one writer gets from {} alone",
        rate(found.commits.value),
        count(found.clients, "client"),
        per_cent(share.value),
        ends.unwrap_or_default(),
        rate(found.syncs.value),
        found.method,
        if is_wal_alone { "the stack of pg_wal" } else { "this stack" }
    );
    // More than a single writer gets is only possible by sharing flushes: PostgreSQL flushes its WAL one flush at a
    // time.
    let surely_shared = share.low.unwrap_or(share.value) > 1.0;
    match (found.clients, surely_shared) {
        (0 | 1, _) => text,
        (_, true) => text + ": group commit lets one flush serve several clients",
        (_, false) => text + "; group commit may let one flush serve several clients",
    }
}

/// A rate as rankings show it: no decimals from 100 on.
fn rate(value: f64) -> String {
    if (100.0..1e4).contains(&value) { format!("{value:.0}") } else { significant(value) }
}
