//! What a commit survives, from facts that were read back and flushes that were counted; never from the plan.
//!
//! The rules in their order; the first that applies decides, and what is worst is asked first:
//! 1. *volatile*: data or WAL in memory, `fsync=off`, a mount option that holds flushes back;
//! 2. *delayed*: `synchronous_commit=off`;
//! 3. *unknown*: nothing was committed, nothing was counted, or the last device that can be seen is not the last there
//!    is, or says that it needs no flushes (then the kernel sends none, and its word is all there is);
//! 4. *flushed*: enough flushes were counted at every device of the WAL that counts them, the lowest included; or the
//!    devices take FUA writes and the WAL is written by a method that asks for them;
//! 5. else *unknown*, with the number that was too small.

use super::findings::{Durability, DurabilityClass, TrialFinding};
use super::strata::{COMMIT, DeviceSums, StrataSums, noun};
use crate::record::built::StackFacts;
use crate::record::case::CaseSpec;
use crate::record::operation::{Operation, Writes};
use crate::record::promise::Claim;
use crate::record::stack::GroundName;
use crate::units::significant;

/// Flushes that must be seen for each sync of the WAL. A sync asks for one; the kernel merges those that are due at the
/// same time (block/blk-flush.c), and the journal of a filesystem may serve two at once: hence not 1. A stack that
/// swallows flushes shows close to 0.
const FLUSHES_PER_SYNC: f64 = 0.5;
/// What the workload asked of the devices below the WAL.
struct Demand<'a> {
    /// What an operation is called.
    noun: &'a str,
    /// Flushes for each operation that are enough.
    flushes_per_operation: f64,
    /// Syncs of the WAL for each operation, where PostgreSQL counted them.
    syncs_per_operation: Option<f64>,
    /// Whether the WAL is written by `open_datasync` or `open_sync`: a write with FUA does without a flush.
    opens_with_sync: bool,
}

/// Judges a case by its measured trials. `operation` is what they did, `done` has the operations of each measure.
#[must_use]
pub fn judge(
    case: &CaseSpec,
    operation: Option<&Operation>,
    trials: &[TrialFinding],
    sums: &StrataSums,
    done: &[(String, u64)],
) -> Durability {
    let Some(operation) = operation else { return unknown("not measured") };
    if let Some(reason) = trials.iter().find_map(volatile) {
        return Durability { class: DurabilityClass::Volatile, reason };
    }
    if trials.iter().any(|trial| setting(trial, "synchronous_commit") == Some("off")) {
        let reason = "synchronous_commit = off: a commit is acknowledged before it is written".to_owned();
        return Durability { class: DurabilityClass::Delayed, reason };
    }
    if case.postgres.is_some() && (operation.writes == Writes::Never || sums.read_only() == Some(true)) {
        return unknown("the workload only reads: no commit needed a flush, so none could be seen");
    }
    let on_its_own = trials.iter().filter_map(|trial| trial.stack.as_ref()).any(|stack| stack.wal.is_some());
    let chain: Vec<DeviceSums> = if on_its_own { sums.wal() } else { sums.data() };
    let demand = match &case.postgres {
        Some(_) => Demand::of_server(noun(case, operation, sums.read_only()), operation, trials, sums),
        None => Demand::of_sync(&operation.noun, done, &chain),
    };
    let stack = trials.iter().find_map(|trial| trial.stack.as_ref());
    let end = stack.and_then(hidden_below);
    let shared = stack.is_some_and(|stack| {
        let way = stack.way_down(stack.wal_ground());
        way.iter().any(|(_, _, node)| node.layer.as_deref() == Some("directory"))
    });
    match chain.last() {
        Some(lowest) if shared => with_others(by_flushes(&chain, lowest, end, &demand)),
        Some(lowest) => by_flushes(&chain, lowest, end, &demand),
        None => {
            let mount = stack.and_then(|stack| stack.mount_of(stack.wal_ground()));
            let below = mount.map_or("the data", |mount| &mount.fstype);
            let why = end.map_or_else(String::new, |end| format!(": {end}"));
            unknown(&format!("no block device with counters is visible below {below}{why}"))
        }
    }
}

impl<'a> Demand<'a> {
    fn of_server(noun: &'a str, operation: &Operation, trials: &[TrialFinding], sums: &StrataSums) -> Demand<'a> {
        let clients = operation.clients.max(1) as f64;
        let method = trials.iter().find_map(|trial| setting(trial, "wal_sync_method"));
        let opens_with_sync = method.is_some_and(|method| method.starts_with("open_"));
        // PostgreSQL counts no sync where the write itself is one.
        let syncs = sums.wal_syncs.per_operation().filter(|syncs| *syncs > 0.0 && !opens_with_sync);
        // At best one sync serves the commits of all clients. A script of the user's own may commit less than once.
        let by_commits = if noun == COMMIT { FLUSHES_PER_SYNC / clients } else { 0.0 };
        let by_syncs = syncs.map_or(0.0, |syncs| syncs * FLUSHES_PER_SYNC);
        let least = by_commits.max(by_syncs);
        let flushes_per_operation = if least > 0.0 { least } else { FLUSHES_PER_SYNC / clients };
        Demand { noun, flushes_per_operation, syncs_per_operation: syncs, opens_with_sync }
    }

    /// Without a server each operation is a sync; those by a file opened with O_(D)SYNC may do with FUA.
    fn of_sync(noun: &'a str, done: &[(String, u64)], chain: &[DeviceSums]) -> Demand<'a> {
        let sum = |open: bool| {
            done.iter().filter(|(name, _)| name.starts_with("open_") == open).map(|(_, n)| *n).sum::<u64>()
        };
        let (open, other) = (sum(true) as f64, sum(false) as f64);
        let exempt = if takes_fua(chain) { open } else { 0.0 };
        let share = if open + other > 0.0 { (open + other - exempt) / (open + other) } else { 1.0 };
        let opens_with_sync = open > 0.0 && other == 0.0;
        let share = if share > 0.0 { share } else { 1.0 };
        Demand { noun, flushes_per_operation: FLUSHES_PER_SYNC * share, syncs_per_operation: None, opens_with_sync }
    }

    /// "0.98 flushes per commit, 1.01 per WAL sync,"
    fn words(&self, flushes: f64) -> String {
        let per_sync =
            self.syncs_per_operation.map(|syncs| format!(" ({} per WAL sync)", significant(flushes / syncs)));
        format!("{} flushes per {}{}", significant(flushes), self.noun, per_sync.unwrap_or_default())
    }
}

/// The fact that makes a trial's stack lose everything, in words.
fn volatile(trial: &TrialFinding) -> Option<String> {
    if setting(trial, "fsync") == Some("off") {
        return Some("fsync = off: PostgreSQL forces nothing out".to_owned());
    }
    let stack = trial.stack.as_ref()?;
    let wal = stack.wal.as_ref().map(|wal| (wal.clone(), "pg_wal".to_owned()));
    let data = stack.data.as_ref().map(|data| (data.clone(), "the data".to_owned()));
    let tablespaces = stack.tablespaces.iter().map(|(name, ground)| (ground.clone(), format!("tablespace {name}")));
    let mut ends = wal.into_iter().chain(data).chain(tablespaces);
    ends.find_map(|(ground, what)| loses_all(stack, &ground, &what))
}

/// Why what lies on a ground is lost at a power cut.
fn loses_all(stack: &StackFacts, ground: &GroundName, what: &str) -> Option<String> {
    if let Some((_, promise)) = stack.promise(Some(ground), Claim::Volatile) {
        return Some(format!("{what} lies in memory: {}", promise.source));
    }
    let (node, promise) = stack.promise(Some(ground), Claim::HoldsFlushesBack)?;
    Some(format!("{} of {} ({}): it sends no flushes", promise.source, stack.name, node.name))
}

/// Why the way down from the WAL ends before a device that stands on nothing else.
fn hidden_below(stack: &StackFacts) -> Option<&str> {
    stack.promise(stack.wal_ground(), Claim::HiddenBelow).map(|(_, promise)| promise.source.as_str())
}

/// A folder that was there already lies on a device that others use too.
fn with_others(found: Durability) -> Durability {
    match found.class {
        DurabilityClass::Flushed => {
            flushed(found.reason + "; the device is shared, and other programs' flushes are counted with ours")
        }
        _ => found,
    }
}

/// Judges by the flushes that were counted below the WAL.
fn by_flushes(chain: &[DeviceSums], lowest: &DeviceSums, end: Option<&str>, demand: &Demand<'_>) -> Durability {
    let name = lowest.name();
    let above = chain.iter().rev().skip(1).find_map(|device| {
        let flushes = device.flushes.per_operation().filter(|flushes| *flushes > 0.0)?;
        Some(format!("; {} were counted at {} above it", demand.words(flushes), device.name()))
    });
    let above = above.unwrap_or_default();
    if lowest.writes_through() {
        return unknown(&format!(
            "{name} says write through: the kernel sends it no flushes, and whether it keeps what it acknowledged cannot \
             be seen from here{above}"
        ));
    }
    if let Some(why) = lowest.uncounted {
        return unknown(&format!("flushes at {name} are not counted: {why}{above}"));
    }
    let Some(flushes) = lowest.flushes.per_operation() else {
        return unknown(&format!("no flushes of {name} were recorded{above}"));
    };
    let file = lowest.backing_file().map(|file| format!("the device below its file {file} cannot be seen"));
    if let Some(end) = end.map(str::to_owned).or(file) {
        return unknown(&format!("{} were counted at {name}, but {end}", demand.words(flushes)));
    }
    let seen = chain.iter().filter(|device| !device.writes_through());
    let seen = seen.filter_map(|device| Some((device.flushes.per_operation()?, device.name())));
    let (least, at) = seen.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((flushes, name.clone()));
    if least >= demand.flushes_per_operation {
        // The level with the fewest is the stack's own where the lowest is shared: others' flushes come on top there.
        let further = if at == name { String::new() } else { format!(", and flushes reach {name}") };
        // Loop devices get another number in each trial.
        let at = if at.starts_with("loop") { "the loop device" } else { at.as_str() };
        return flushed(format!("{} seen at {at}{further}", demand.words(least)));
    }
    let writes = lowest.writes.per_operation().unwrap_or(0.0);
    if demand.opens_with_sync && takes_fua(chain) && writes >= demand.flushes_per_operation {
        return flushed(format!(
            "{} writes per {} reached {name} by a method that asks for FUA, which it takes",
            significant(writes),
            demand.noun
        ));
    }
    let enough = significant(demand.flushes_per_operation);
    unknown(&format!("only {} seen at {at}: at least {enough} were to be expected", demand.words(least)))
}

fn takes_fua(chain: &[DeviceSums]) -> bool {
    !chain.is_empty() && chain.iter().all(DeviceSums::takes_fua)
}

fn setting<'a>(trial: &'a TrialFinding, name: &str) -> Option<&'a str> {
    let server = trial.server.as_ref()?;
    server.key_settings.get(name).or_else(|| server.settings.get(name)).map(String::as_str)
}

fn unknown(reason: &str) -> Durability {
    Durability { class: DurabilityClass::Unknown, reason: reason.to_owned() }
}

fn flushed(reason: String) -> Durability {
    Durability { class: DurabilityClass::Flushed, reason }
}
