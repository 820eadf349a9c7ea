//! What a commit survives, judged by promises that were read back and flushes that were counted, never by the plan.
//! `record::durability` maps facts to promises.
//!
//! Rules in order, worst outcome first; the first that applies decides:
//! 1. *volatile*: something is in memory or suppresses flushes: the server, or a node below it;
//! 2. *unknown*: nothing was committed;
//! 3. *may tear*: the server does not write full pages; ranked only among cases with the same class otherwise;
//! 4. *delayed*: commits are acknowledged early, by settings of the server or of a script or function;
//! 5. otherwise the lowest class of `pg_wal`, the data and each tablespace, if they are on different storage.
//!
//! For each of these:
//! 1. *unknown*: nothing was counted, flushes of other programs cannot be separated, or the devices below the lowest
//!    visible one are hidden;
//! 2. *declared stable*: the lowest device says that it needs no flushes (so the kernel sends it none), writes reach
//!    it, and devices above it that count flushes counted enough;
//! 3. *flushed*: enough flushes were counted at every device that counts them, including the lowest; or the devices
//!    take FUA writes, and the WAL is written by a method that requests them, bypassing the page cache;
//! 4. otherwise *unknown*, with the count that was too small.
//!
//! A filesystem without a journal does not change the class; it is reported.

use crate::analyse::case::strata::{COMMIT, DeviceSums, StrataSums, noun};
use crate::analyse::case::sums::CaseSums;
use crate::analyse::case::synced::SyncCost;
use crate::analyse::findings::durability::{by_promise, class, class_word, unknown, virtual_disk};
use crate::analyse::findings::{Durability, DurabilityClass, TrialFinding};
use crate::analyse::run::power_cuts;
use crate::analyse::trial::counters::Flow;
use crate::record::built::StackFacts;
use crate::record::case::CaseSpec;
use crate::record::claim::{Claim, Promise};
use crate::record::durability as table;
use crate::record::facts::{DeviceFacts, FoundSetting, ServerFacts};
use crate::record::operation::{Operation, Writes};
use crate::record::stack::{BaseName, End};
use crate::units::significant;
use std::collections::BTreeSet;

/// Share of the expected flushes that must be seen if syncs were counted roughly or not at all: the kernel merges
/// flushes that are due at the same time (block/blk-flush.c), and backends report their syncs up to a second late.
const ROUGH_PART: f64 = 0.5;
/// The same if syncs were counted exactly. WAL syncs are sequential, and a sync is never served by a flush that began
/// before it: an honest stack shows all of them except those in flight when counting begins and ends.
const EXACT_PART: f64 = 0.95;
/// Syncs that the WAL writer may report late.
const LATE_SYNCS: f64 = 10.0;
/// WAL records per transaction with an id whose only record is its commit; records of other processes add to it.
const MOST_COMMIT_RECORDS: f64 = 1.1;
/// Largest share of the counted flushes that may belong to other programs, judged by their idle traffic: they would
/// have to flush four times as often during the measurement before all flushes could be theirs.
const MOST_OF_OTHERS: f64 = 0.25;
/// From this version on, `debug_io_direct` decides about O_DIRECT; before, `wal_level = minimal` did.
const DIRECT_BY_SETTING: u32 = 160_000;

/// Flushes expected from the devices below one part of the database.
#[derive(Default)]
struct Demand<'a> {
    /// Name of one unit.
    noun: &'a str,
    /// Number of units if they are not the client's operations: checkpoints.
    units: Option<f64>,
    /// Minimum number of syncs per unit that cannot share a flush.
    flushes: f64,
    /// True if the number is exact: each unit waits for its own sync.
    is_exact: bool,
    /// WAL syncs per operation, if PostgreSQL counted them.
    syncs: Option<f64>,
    /// Who issues the syncs.
    whose: &'static str,
    /// True if the WAL is written by `open_datasync` or `open_sync` and bypasses the page cache: such a write uses FUA
    /// instead of a flush. A buffered one is written back and then flushed (generic_write_sync in fs.h).
    asks_for_fua: bool,
}

impl CaseSums {
    pub fn durability(&self) -> Durability {
        power_cuts::joined(judge(self), self.verdict.as_ref())
    }
}

/// Judges a case by its measured trials.
pub fn judge(case: &CaseSums) -> Durability {
    let Some(operation) = &case.operation else { return unknown("not measured") };
    if let Some(reason) = case.trials.iter().find_map(|trial| volatile(trial, &case.spec, operation)) {
        return Durability::of(DurabilityClass::Volatile, reason);
    }
    let read_only = match operation.writes {
        Writes::Never => true,
        Writes::Always => false,
        Writes::Unknown => case.strata.read_only() == Some(true),
    };
    if case.spec.postgres.is_some() && read_only {
        let reason = "the workload only reads: no commit needed a flush".to_owned();
        return Durability::of(DurabilityClass::NotApplicable, reason);
    }
    let promises: Vec<Promise> = case.trials.iter().flat_map(|trial| of_server(trial, operation)).collect();
    let found = match promises.iter().find(|promise| promise.claim == Claim::AcknowledgesEarly) {
        Some(early) => by_promise(early),
        None => settings_untold(case, operation).or_else(|| waits_for_nothing(case)).unwrap_or_else(|| {
            let mut found = by_bases(case, operation);
            found.reason.extend(unlogged(case).map(|tables| format!("; {tables}")));
            found
        }),
    };
    match promises.iter().find(|promise| promise.claim == Claim::MayTear) {
        Some(tears) => Durability {
            class: DurabilityClass::MayTear,
            reason: format!("{tears}; otherwise {}: {}", class_word(found.class), found.reason),
            otherwise: Some(found.class),
            sight_ends: found.sight_ends,
        },
        None => found,
    }
}

/// A setting that decides what a commit means and is set to an unknown value.
fn settings_untold(case: &CaseSums, operation: &Operation) -> Option<Durability> {
    let mut elsewhere = case.trials.iter().flat_map(|trial| set_elsewhere(trial, operation));
    let untold = elsewhere.find(|found| found.value.is_none())?;
    Some(unknown(&format!("{} sets {} to a value that its text does not show", untold.place, untold.name)))
}

/// Class of transactions that only write unlogged tables: each has a commit record but does not wait for it
/// (RecordTransactionCommit in xact.c).
fn waits_for_nothing(case: &CaseSums) -> Option<Durability> {
    let sums = &case.strata;
    // Subtransactions have ids, but no commit records.
    let commits = sums.load_xids.min(sums.load_operations);
    if commits <= 0.0 || sums.load_records >= MOST_COMMIT_RECORDS * commits {
        return None;
    }
    let why = "these transactions write no WAL that a commit waits for";
    Some(match unlogged(case) {
        Some(tables) => Durability::of(DurabilityClass::Volatile, format!("{tables}, and {why}")),
        None => unknown(&format!("{why}: unlogged or temporary tables alone")),
    })
}

/// Which tables of a case are empty after a power cut.
pub fn unlogged(case: &CaseSums) -> Option<String> {
    let mut of_trials = case.trials.iter().filter_map(|trial| Some(&trial.server.as_ref()?.unlogged));
    let tables = of_trials.find(|tables| !tables.is_empty())?;
    let (plural, are) = if tables.len() == 1 { ("", "is") } else { ("s", "are") };
    Some(format!("unlogged table{plural} {} {are} empty after a power cut", tables.join(", ")))
}

/// Lowest class over all storage of the database, naming the part if there are several.
fn by_bases(case: &CaseSums, operation: &Operation) -> Durability {
    let Some(stack) = case.trials.iter().find_map(|trial| trial.stack.as_ref()) else {
        return unknown("its storage stack was not recorded");
    };
    if case.strata.readings < 2 {
        return unknown("the measurement is too short: counters are read at its start and after each whole second");
    }
    let mut found: Vec<(String, Durability)> = Vec::new();
    for (end, base) in stack.ends().into_iter().filter(|(end, _)| is_used(end, operation)) {
        let chain = case.strata.below(&end);
        // The WAL comes first.
        let demand = match (&case.spec.postgres, found.is_empty()) {
            (None, _) => Demand::of_sync(&operation.noun, case.synced.fua_share(), &chain),
            (Some(_), true) => match Demand::of_wal(case, operation) {
                Ok(demand) => demand,
                Err(why) => return unknown(&why),
            },
            (Some(_), false) => Demand::of_checkpoints(case.strata.checkpoints),
        };
        let cost = case.sync_cost.as_ref().filter(|_| found.is_empty());
        let mut judged = WayDown { stack, base, chain: &chain, sums: &case.strata, cost }.judge(&demand);
        judged.reason.extend(stack.promise(Some(base), Claim::Unjournaled).map(|(_, promise)| format!("; {promise}")));
        found.push((what(&end), judged));
    }
    let several = found.len() > 1;
    let lowest = found.iter().map(|(_, found)| found.class).max().unwrap_or(DurabilityClass::Unknown);
    let sight_ends: BTreeSet<String> = found.iter().flat_map(|(_, found)| found.sight_ends.clone()).collect();
    let reasons = found.into_iter().filter(|(_, found)| found.class == lowest);
    let reasons = reasons.map(|(what, found)| if several { format!("{what}: {}", found.reason) } else { found.reason });
    let (reason, sight_ends) = (reasons.collect::<Vec<_>>().join("; "), sight_ends.into_iter().collect());
    Durability { class: lowest, reason, otherwise: None, sight_ends }
}

/// True if the workload has data there: it only uses a tablespace that it names.
fn is_used(end: &End, operation: &Operation) -> bool {
    match end {
        End::Tablespace(name) => operation.settings.values().any(|value| value == name),
        End::Data | End::Wal => true,
    }
}

fn what(end: &End) -> String {
    match end {
        End::Wal => "pg_wal".to_owned(),
        End::Data => "the data".to_owned(),
        End::Tablespace(name) => format!("tablespace {name}"),
    }
}

impl<'a> Demand<'a> {
    /// Demand of commits at the WAL's devices, or why their number is unknown.
    fn of_wal(case: &'a CaseSums, operation: &'a Operation) -> Result<Demand<'a>, String> {
        let noun = noun(&case.spec, operation, case.strata.read_only());
        let clients = operation.clients.max(1) as f64;
        let servers: Vec<&ServerFacts> = case.trials.iter().filter_map(|trial| trial.server.as_ref()).collect();
        let mut methods = servers.iter().filter_map(|server| setting(server, "wal_sync_method"));
        let opens_with_sync = methods.any(|method| method.starts_with("open_"));
        // PostgreSQL does not count a sync if the write itself is one.
        let syncs = case.strata.wal_syncs.per_operation().filter(|syncs| *syncs > 0.0 && !opens_with_sync);
        // A user's own script may write less than once per transaction; then those that wrote are counted.
        let writing = match noun {
            COMMIT => 1.0,
            _ => match case.strata.xids.per_operation() {
                None => return Err(format!("the number of {noun}s that wrote was not counted")),
                Some(0.0) => return Err(format!("no {noun} that writes was counted")),
                Some(writing) => writing,
            },
        };
        let asks_for_fua = opens_with_sync && servers.iter().all(|server| writes_wal_directly(server));
        let whose = if case.spec.stack.wal.is_some() { "WAL syncs" } else { "WAL syncs, and all of data files," };
        // At best one sync serves the commits of all clients. Subtransactions also take an id, but may not wait for a
        // sync.
        let is_exact = noun == COMMIT && operation.clients == 1 && syncs.is_none();
        Ok(Demand { noun, units: None, flushes: writing / clients, is_exact, syncs, whose, asks_for_fua })
    }

    /// Demand of checkpoints at the data's devices if the WAL is elsewhere: each checkpoint syncs every file it has
    /// written, and the WAL before old segments are removed. Without a checkpoint, any flush shows that flushes pass.
    fn of_checkpoints(checkpoints: u64) -> Demand<'a> {
        let units = Some(checkpoints.max(1) as f64);
        let noun = if checkpoints == 0 { "measurement without a checkpoint" } else { "checkpoint" };
        Demand { noun, units, flushes: 1.0, whose: "syncs of data files", ..Demand::default() }
    }

    /// Demand without a server, where each operation is a sync; operations that bypass the page cache and request FUA
    /// need no flush.
    fn of_sync(noun: &'a str, fua_share: f64, chain: &[DeviceSums]) -> Demand<'a> {
        let exempt = if takes_fua(chain) { fua_share } else { 0.0 };
        Demand { noun, flushes: 1.0 - exempt, whose: "syncs", ..Demand::default() }
    }

    /// Count per unit.
    fn per_unit(&self, flow: &Flow) -> Option<f64> {
        let each = flow.per_operation()?;
        Some(self.units.map_or(each, |units| flow.amount / units))
    }

    /// "1.01 flushes per WAL sync (0.98 per commit)"
    fn words(&self, flushes: f64, per_sync: Option<f64>) -> String {
        let per_unit = significant(flushes);
        let per_sync = per_sync.or(self.syncs.map(|syncs| flushes / syncs)).map(significant);
        let number = per_sync.as_ref().unwrap_or(&per_unit);
        let counted = format!("{number} flush{}", if number == "1" { "" } else { "es" });
        match per_sync {
            Some(_) => format!("{counted} per WAL sync ({per_unit} per {})", self.noun),
            None => format!("{counted} per {}", self.noun),
        }
    }
}

/// True if the server writes its WAL bypassing the page cache (`get_sync_bit` in xlog.c), for a method that opens with
/// a sync flag.
fn writes_wal_directly(server: &ServerFacts) -> bool {
    if server.version_num >= DIRECT_BY_SETTING {
        let direct = setting(server, "debug_io_direct").unwrap_or_default();
        return direct.split(',').any(|what| what.trim() == "wal");
    }
    setting(server, "wal_level") == Some("minimal")
}

/// The fact that makes a trial's stack lose everything, in words.
fn volatile(trial: &TrialFinding, spec: &CaseSpec, operation: &Operation) -> Option<String> {
    let promises = of_server(trial, operation);
    if let Some(promise) = promises.iter().find(|it| class(it.claim) == Some(DurabilityClass::Volatile)) {
        return Some(promise.to_string());
    }
    let stack = trial.stack.as_ref()?;
    stack.ends().into_iter().find_map(|(end, base)| loses_all(stack, spec, base, &what(&end)))
}

/// Why data on one part of the storage are lost in a power cut.
fn loses_all(stack: &StackFacts, spec: &CaseSpec, base: &BaseName, what: &str) -> Option<String> {
    if let Some((_, promise)) = stack.promise(Some(base), Claim::Volatile) {
        return Some(format!("{what} is in memory: {}", promise.source));
    }
    let (node, promise) = stack.promise(Some(base), Claim::HoldsFlushesBack)?;
    let asked = spec.stack.node(&node.name).map_or_else(Vec::new, |node| node.options.texts("mount"));
    let layer = node.layer.as_deref().unwrap_or_default();
    // The kernel shows ext4's `barrier=0` as `nobarrier`.
    let mut others = asked.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|option| {
        promise.source.starts_with("mount option")
            && !promise.source.contains(option)
            && table::mount_option(option, layer).is_some_and(|row| row.claim == promise.claim)
    });
    let planned = others.next().map(|option| format!(", `{option}` in the plan")).unwrap_or_default();
    Some(format!("{}{planned} of {} ({}): {}", promise.source, stack.name, node.name, promise.why))
}

/// Devices below one part of the database, with their counters.
struct WayDown<'a> {
    stack: &'a StackFacts,
    base: &'a BaseName,
    /// Levels of devices, lowest last.
    chain: &'a [DeviceSums],
    sums: &'a StrataSums,
    /// Measured cost of one sync there.
    cost: Option<&'a SyncCost>,
}

/// Flushes seen at one level.
struct FlushesSeen {
    name: String,
    /// Flushes per unit, and per WAL sync if those were counted exactly.
    flushes: f64,
    per_sync: Option<f64>,
    /// Flushes seen over flushes needed, by the strictest requirement; below 1 there are too few.
    enough: f64,
    /// The requirement in words.
    needed: String,
    /// Largest share of syncs that could be missing unnoticed.
    unseen: f64,
}

impl WayDown<'_> {
    fn judge(&self, demand: &Demand<'_>) -> Durability {
        let end = self.stack.promise(Some(self.base), Claim::HiddenBelow).map(|(_, promise)| promise.to_string());
        let Some(lowest) = self.chain.last() else {
            let mount = self.stack.mount_of(Some(self.base));
            let below = mount.map_or("the data", |mount| &mount.fstype);
            let why = end.map_or_else(String::new, |end| format!(": {end}"));
            return unknown(&format!("no block device with counters is visible below {below}{why}"));
        };
        self.others().map_or_else(|| self.by_flushes(lowest, end, demand), |why| unknown(&why))
    }

    /// True if it is an existing folder, whose devices other programs use too.
    fn is_shared(&self) -> bool {
        self.stack.way_down(Some(self.base)).iter().any(|(_, _, node)| node.layer.as_deref() == Some("directory"))
    }

    /// Why flushes of other programs cannot be separated.
    fn others(&self) -> Option<String> {
        let mut counting = self.chain.iter().filter(|level| level.own_flushes().is_some());
        counting.find_map(|level| match level.share_of_others() {
            None if self.is_shared() => {
                Some(format!("other programs flush {} too, at a rate that was not measured", level.name()))
            }
            Some(share) if share > MOST_OF_OTHERS => Some(format!(
                "{} % of the flushes at {} may come from other programs, by their rate before the trials",
                significant(share * 100.0),
                level.name()
            )),
            _ => None,
        })
    }

    /// Judges by the flushes that were counted.
    fn by_flushes(&self, lowest: &DeviceSums, end: Option<String>, demand: &Demand<'_>) -> Durability {
        let name = lowest.name();
        let above = self.above(demand);
        if let Some(promise) = lowest.promise(Claim::FlushesUncounted).filter(|_| !lowest.declares_stable()) {
            return unknown(&format!("flushes at {name} are not counted: {}{above}", promise.why));
        }
        let flushes = lowest.own_flushes().and_then(|flushes| demand.per_unit(&flushes));
        let file = lowest.backing_file().map(|file| format!("the device below its file {file} is not visible"));
        if let Some(end) = end.or(file) {
            let seen = flushes.map(|flushes| format!("counted {} at {name}, but ", demand.words(flushes, None)));
            return unknown(&(seen.unwrap_or_default() + &end));
        }
        let writes = demand.per_unit(&lowest.writes()).unwrap_or(0.0);
        let least = self.least(demand);
        if let Some(promise) = lowest.promise(Claim::DeclaredStable)
            && lowest.declares_stable()
        {
            // The word of the lowest device alone is not enough.
            return match &least {
                Some(least) if least.enough < 1.0 => unknown(&least.too_few(demand)),
                _ if writes < demand.flushes * ROUGH_PART => {
                    let writes = significant(writes);
                    unknown(&format!("{promise}; but only {writes} writes per {} were counted there", demand.noun))
                }
                _ => {
                    let seen = format!("{promise}; {} writes per {} reached it", significant(writes), demand.noun);
                    self.with_caveats(DurabilityClass::DeclaredStable, seen + &above, lowest)
                }
            };
        }
        let Some(least) = least else {
            return unknown(&format!("no flushes of {name} were recorded{above}"));
        };
        if least.enough >= 1.0 {
            // If the lowest device is shared, the level with the fewest flushes is one of the stack's own: other
            // programs' flushes add to the lowest.
            let further = if least.name == name { String::new() } else { format!(", and flushes reach {name}") };
            let words = demand.words(least.flushes, least.per_sync);
            let unseen =
                format!("up to {} % of {} could be skipped unseen", (least.unseen * 100.0 - 1e-6).ceil(), demand.whose);
            let seen = format!("{words} seen at {}{further}; {unseen} ({})", plain(&least.name), least.needed);
            // If only some of several disks at one depth declare their writes stable, that declaration is needed as
            // well.
            return match lowest.promise(Claim::DeclaredStable) {
                None => self.with_caveats(DurabilityClass::Flushed, seen, lowest),
                Some(word) => self.with_caveats(DurabilityClass::DeclaredStable, format!("{word}; {seen}"), lowest),
            };
        }
        if demand.asks_for_fua && takes_fua(self.chain) && writes >= demand.flushes * ROUGH_PART {
            let seen = format!(
                "{} writes per {} reached {name} by a method that requests FUA with direct I/O; {name} supports FUA",
                significant(writes),
                demand.noun
            );
            return self.with_caveats(DurabilityClass::Flushed, seen, lowest);
        }
        if !self.chain.iter().any(|level| level.ever_flushed) {
            return unknown(&format!("{name} has never counted a flush: unknown whether it counts any"));
        }
        unknown(&least.too_few(demand))
    }

    /// The level with the fewest flushes relative to its requirement, among those that need and count them.
    fn least(&self, demand: &Demand<'_>) -> Option<FlushesSeen> {
        let levels = self.chain.iter().enumerate().filter(|(_, level)| !level.declares_stable());
        levels.filter_map(|(depth, level)| self.seen(depth, level, demand)).min_by(|a, b| a.enough.total_cmp(&b.enough))
    }

    fn seen(&self, depth: usize, level: &DeviceSums, demand: &Demand<'_>) -> Option<FlushesSeen> {
        let flushes = demand.per_unit(&level.own_flushes()?)?;
        let others = level.share_of_others().unwrap_or(0.0);
        // For one client whose commits each sync, PostgreSQL's sync count is not needed.
        let syncs = if demand.is_exact { self.sums.load_operations } else { self.sums.load_syncs };
        let exact = (EXACT_PART - others - LATE_SYNCS / syncs.max(1.0)).max(ROUGH_PART);
        let counted = level.load_flushes.filter(|_| syncs > 0.0 && (demand.is_exact || demand.syncs.is_some()));
        let counted = counted.map(|flushes| flushes * (1.0 - others) / syncs);
        let (per_commit, per_sync) = if demand.is_exact { (counted, None) } else { (None, counted) };
        let (cost, source) = self.cost_of_a_sync(depth);
        let (flushes, by_units) =
            per_commit.map_or((flushes, demand.flushes * ROUGH_PART), |flushes| (flushes, exact * cost));
        let by_syncs = match per_sync {
            Some(seen) => Some((seen, exact * cost)),
            None => demand.syncs.map(|syncs| (flushes / syncs, ROUGH_PART * cost)),
        };
        let units = over(flushes, by_units);
        let syncs = by_syncs.map(|(seen, needed)| over(seen, needed));
        let enough = syncs.unwrap_or(units).min(units);
        // Each of several devices may get its own flush: then that many cost one sync.
        let may_cost = level.facts.len() as f64 / cost;
        let strictest = if self.cost.is_some() { enough } else { enough.max(enough * may_cost) };
        // Skipped ones are not among those seen.
        let part = if counted.is_some() { exact } else { ROUGH_PART };
        let by_sync = syncs.is_some_and(|syncs| syncs <= units);
        let (needed, noun) = match by_syncs.filter(|_| by_sync) {
            Some((_, needed)) => (needed, "WAL sync"),
            None => (by_units, demand.noun),
        };
        let source = if per_commit.is_some() || by_sync { source } else { String::new() };
        let needed = format!("expected at least {} per {noun}{source}", significant(needed));
        let unseen = (1.0 - 1.0 / strictest.max(1.0 / part)).clamp(0.0, 1.0);
        Some(FlushesSeen { name: level.name(), flushes, per_sync, enough, needed, unseen })
    }

    /// Flushes that one sync costs at a level, and how that is known.
    fn cost_of_a_sync(&self, depth: usize) -> (f64, String) {
        // Other programs also flush lower, shared devices: a flush above causes at least one below.
        if let Some(cost) = self.cost.filter(|cost| cost.levels.len() == self.chain.len() && !self.is_shared())
            && let Some(flushes) = cost.levels[..=depth].iter().flatten().copied().reduce(f64::min)
        {
            return (flushes, format!("; one sync is {flushes} there, as case {} counted", cost.case));
        }
        let mount = self.stack.mount_of(Some(self.base)).filter(|mount| mount.fstype == "btrfs");
        let mount = mount.filter(|mount| {
            let mut options = mount.super_options.iter().chain(&mount.options);
            !options.any(|option| ["nodatacow", "nodatasum"].contains(&option.as_str()))
        });
        match (mount, self.chain.first()) {
            // btrfs flushes each device, and writes the superblock with FUA (write_all_supers in disk-io.c).
            (Some(_), Some(top)) => {
                let each = if top.takes_fua() { 1.0 } else { 2.0 };
                let devices = if depth == 0 { top.facts.len() as f64 } else { 1.0 };
                (each * devices, format!("; one sync is {} on btrfs", significant(each * devices)))
            }
            _ => (1.0, String::new()),
        }
    }

    /// Count above the lowest device, in words.
    fn above(&self, demand: &Demand<'_>) -> String {
        let above = self.chain.iter().rev().skip(1).find_map(|device| {
            let flushes = demand.per_unit(&device.own_flushes()?).filter(|flushes| *flushes > 0.0)?;
            Some(format!("; {} counted at {} above it", demand.words(flushes, None), plain(&device.name())))
        });
        above.unwrap_or_default()
    }

    /// A favourable class with its limitations.
    fn with_caveats(&self, class: DurabilityClass, mut reason: String, lowest: &DeviceSums) -> Durability {
        if self.is_shared() {
            let others = lowest.share_of_others().unwrap_or(0.0) * lowest.flushes().amount;
            let without = if others > 0.0 {
                "their flush rate before the trials is subtracted"
            } else {
                "they did not flush it before the trials"
            };
            reason.push_str(&format!("; device shared with other programs: {without}"));
        }
        let is_virtual = self.sums.in_virtual_machine || lowest.facts.iter().any(DeviceFacts::is_made_up);
        let sight_ends = is_virtual.then(|| virtual_disk(&lowest.name()));
        Durability { class, reason, otherwise: None, sight_ends: sight_ends.into_iter().collect() }
    }
}

/// A loop device's number differs between trials.
fn plain(name: &str) -> &str {
    if name.starts_with("loop") { "the loop device" } else { name }
}

impl FlushesSeen {
    fn too_few(&self, demand: &Demand<'_>) -> String {
        format!("only {} seen at {}: {}", demand.words(self.flushes, self.per_sync), self.name, self.needed)
    }
}

/// Infinite where nothing is needed.
fn over(seen: f64, needed: f64) -> f64 {
    if needed > 0.0 { seen / needed } else { f64::INFINITY }
}

fn takes_fua(chain: &[DeviceSums]) -> bool {
    !chain.is_empty() && chain.iter().all(DeviceSums::takes_fua)
}

/// Promises of a trial's server by its settings, then by those of scripts and functions, worst first.
fn of_server(trial: &TrialFinding, operation: &Operation) -> Vec<Promise> {
    let mut promises: Vec<Promise> =
        table::settings().filter_map(|name| table::setting(name, setting(trial.server.as_ref()?, name)?)).collect();
    promises.extend(set_elsewhere(trial, operation).filter_map(|found| {
        let promise = table::setting(&found.name, found.value.as_deref()?)?;
        Some(Promise { source: format!("{} ({})", promise.source, found.place), ..promise })
    }));
    promises
}

/// Settings in force beyond those of a plain session.
fn set_elsewhere<'a>(trial: &'a TrialFinding, operation: &'a Operation) -> impl Iterator<Item = &'a FoundSetting> {
    operation.script_settings.iter().chain(trial.server.iter().flat_map(|server| &server.found_after))
}

fn setting<'a>(server: &'a ServerFacts, name: &str) -> Option<&'a str> {
    server.key_settings.get(name).or_else(|| server.settings.get(name)).map(String::as_str)
}
