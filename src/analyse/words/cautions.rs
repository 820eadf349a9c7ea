//! Caveats on the figures of a run.

use crate::analyse::case::cpu_use::CpuUse;
use crate::analyse::case::sums::CaseSums;
use crate::analyse::case::synced;
use crate::analyse::findings::groups::{by_key, distinct};
use crate::analyse::findings::lists::numbered;
use crate::analyse::findings::remark::{Number, Remark, Weight};
use crate::analyse::findings::{CaseFinding, MachineFinding, TrialFinding};
use crate::analyse::run::{durability, power_cuts};
use crate::analyse::trial::arc;
use crate::analyse::words::window;
use crate::record::built::{NodeFacts, StackFacts};
use crate::record::case::CaseSpec;
use crate::record::claim::Claim;
use crate::record::facts::{Fits, HostFacts, MountFacts};
use crate::record::run::RunRecord;
use crate::record::stack::BaseName;
use crate::units::{Bytes, Micros};
use std::collections::{BTreeMap, BTreeSet};

/// Share of one CPU above which the cost of telemetry is reported: the manual promises less.
const TELEMETRY_ALLOWANCE: f64 = 0.005;

/// Share of the CPUs from which clients on the server's machine are reported.
const CLIENTS_WORTH_SAYING: f64 = 1.0 / 3.0;

/// Share of first operations from which on they may make a p99.
const FIRSTS_WORTH_SAYING: f64 = 0.01;

/// Remarks on one case due in this many blocks, most important first. `found` is its finding.
pub fn of_case(found: &CaseFinding, sums: &CaseSums, run: &RunRecord, blocks: u32) -> Vec<Remark> {
    if sums.trials.is_empty() {
        return Vec::new();
    }
    let mut remarks = failures(found);
    remarks.extend(checks(&sums.trials));
    remarks.extend(found.synced.iter().flat_map(synced::remarks));
    let unjournaled: BTreeSet<String> = sums.trials.iter().flat_map(unjournaled).collect();
    remarks.extend(power_cuts::remark(&durability::judge(sums), sums.verdict.as_ref()));
    remarks.extend(durability::unlogged(sums).map(|what| Remark::plain(Weight::Unsafe, what)));
    remarks.extend(unjournaled.into_iter().map(|what| Remark::plain(Weight::Unsafe, what)));
    remarks.extend(trials(found, blocks));
    remarks.extend(beside_turns(&sums.spec, run));
    remarks.extend(commits_of_btrfs(sums, run));
    let (firsts, all) = sums.turns.firsts;
    let firsts = Some(firsts as f64 / all as f64).filter(|share| *share > FIRSTS_WORTH_SAYING);
    let what = "{} of operations are first in a turn, caches empty: p99 may be theirs";
    remarks.extend(Remark::of_share(Weight::Unlike, what, firsts));
    remarks.extend(sums.capacity.remarks());
    remarks.extend(sums.epochs.remarks());
    remarks.extend(sums.ageing.remarks());
    remarks.extend(missing_measures(sums));
    remarks.extend(sums.drives.remarks());
    remarks.extend(window::remarks(found, sums, run.quick.is_some()));
    let clients = sums.cpu.clients().filter(|share| *share >= CLIENTS_WORTH_SAYING);
    let what = "clients take {} of these CPUs: figures are partly theirs";
    remarks.extend(Remark::of_share(Weight::Elsewhere, what, clients));
    // Then the storage's share of the time says less, as a stack also costs CPU time.
    let full = sums.cpu.cpu().filter(|cpu| cpu.is_full()).map(CpuUse::busy_of_own);
    remarks.extend(Remark::of_share(Weight::Elsewhere, "CPUs were {} busy: stacks may differ by their CPU cost", full));
    remarks.extend(other_programs(sums));
    remarks.extend(fits(found, sums));
    let what = "the ARC can hold {} of reads meant to be cold: limit zfs_arc_max";
    remarks.extend(Remark::of_share(Weight::Cached, what, sums.arc_holds));
    remarks.extend(sparse(&sums.trials));
    remarks.extend(differing_facts(&sums.trials));
    remarks.extend(age(&sums.trials));
    remarks.extend(clock(sums));
    remarks.extend(missed(&sums.trials));
    let what = "latency was logged for {} of operations: others may be slower";
    remarks.extend(Remark::of_share(Weight::Instrument, what, found.log_sample));
    let telemetry = Some(sums.telemetry_share).filter(|share| *share > TELEMETRY_ALLOWANCE);
    remarks.extend(Remark::of_share(Weight::Instrument, "telemetry used {} of one CPU in the worst trial", telemetry));
    remarks
}

/// Filesystems of a trial's database that a power cut may destroy.
fn unjournaled(trial: &TrialFinding) -> Vec<String> {
    let Some(stack) = &trial.stack else { return Vec::new() };
    let found = stack.ends().into_iter().filter_map(|(_, base)| stack.promise(Some(base), Claim::Unjournaled));
    found.map(|(_, promise)| promise.to_string()).collect()
}

/// Remark on a clock that was set during a trial.
fn clock(sums: &CaseSums) -> Option<Remark> {
    let (trial, step_us) = sums.clock_step?;
    let (by, way) = (Micros(step_us.unsigned_abs()), if step_us < 0 { "back" } else { "forward" });
    let what = format!("trial {trial}: wall clock set {way} {by}, or not the clients': log may be off");
    Some(Remark::plain(Weight::Unlike, what))
}

/// Remark on a case that is ranked among others that had turns, and had none.
fn beside_turns(spec: &CaseSpec, run: &RunRecord) -> Option<Remark> {
    let has_turns = |case: &CaseSpec| run.turns.contains(&case.id);
    let is_among_turns = run.cases.iter().any(|other| has_turns(other) && other.workload == spec.workload);
    (is_among_turns && !has_turns(spec)).then(|| {
        let what = "measured by itself, not in turns, with the plan's checkpoints";
        Remark::plain(Weight::Unlike, what)
    })
}

/// Remark on btrfs in turns: docs/validation.md has short turns against long ones.
fn commits_of_btrfs(sums: &CaseSums, run: &RunRecord) -> Option<Remark> {
    let mount = sums.trials.iter().find_map(|trial| trial.stack.as_ref()?.mount())?;
    (mount.fstype == "btrfs" && run.turns.contains(&sums.spec.id)).then(|| {
        let what = "btrfs commits early in turns: a full run may slow it";
        Remark::plain(Weight::Unlike, what)
    })
}

fn other_programs(sums: &CaseSums) -> Option<Remark> {
    let words = format!("other programs: ≥ {{}} of one CPU, worst trial ({})", sums.cpu.other()?);
    Remark::of_share(Weight::Disturbed, &words, sums.cpu.others_worst())
}

fn fits(found: &CaseFinding, sums: &CaseSums) -> Option<Remark> {
    let mount = sums.trials.iter().find_map(|trial| trial.stack.as_ref()?.mount());
    let why = match found.fits? {
        Fits::SharedBuffers => "fit into shared_buffers: no reads reached storage",
        Fits::Memory if mount.is_some_and(MountFacts::is_kept_by_arc) => "can be held by the ARC: reads may be from it",
        // For a dataset whose `primarycache` is not `all`, nothing caches the pages.
        Fits::Memory if mount.is_some_and(|mount| mount.fstype == "zfs") => return None,
        // The ARC's part of them has its own caution.
        Fits::Memory if sums.operation.as_ref().is_some_and(arc::reads_cold) => return None,
        Fits::Memory => "fit into memory: reads came from cache",
        Fits::Neither => return None,
    };
    Some(match found.database_bytes {
        Some(bytes) => Remark::with(Weight::Cached, format!("data ({{}}) {why}"), Number::Bytes(bytes)),
        None => Remark::plain(Weight::Cached, format!("data {why}")),
    })
}

/// Remarks on measures missing in some trials and, on an aged stack, whose charts show each, in all of them.
fn missing_measures(sums: &CaseSums) -> impl Iterator<Item = Remark> {
    let is_aged = !sums.spec.age.is_empty();
    sums.measures.iter().filter(move |measure| measure.is_partial() || is_aged).filter_map(|measure| {
        let why = measure.missing()?;
        Some(Remark::plain(Weight::Missing, format!("{} has no figure: {why}", measure.found.name)))
    })
}

/// Remarks on too few trials, or on trials without an interval.
fn trials(found: &CaseFinding, blocks: u32) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if found.trials < blocks {
        let measured = Number::Of(u64::from(found.trials), u64::from(blocks));
        remarks.push(Remark::with(Weight::Unsure, "measured in {} blocks", measured));
    }
    match (found.trials, found.measures.iter().find_map(|measure| measure.rate).map(|rate| rate.low)) {
        (1, Some(_)) => remarks.push(Remark::plain(Weight::SingleTrial, "a single trial has no interval")),
        (3.., Some(None)) => remarks.push(Remark::plain(Weight::Unsure, "no interval from its trials")),
        _ => {}
    }
    remarks
}

fn failures(found: &CaseFinding) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for measure in &found.measures {
        // A search exceeds the capacity on purpose.
        let skipped = if found.capacity.is_some() { 0 } else { measure.skipped };
        // pgbench chooses the script of an operation when a client sends it.
        let unsent = match found.measures.len() {
            1 => "never sent: latencies count their wait",
            _ => "never sent: wait counted of all scripts together",
        };
        let (failed, late) = ("operations failed", "operations skipped (already late)");
        let counts = [(measure.failed, failed), (skipped, late), (measure.unsent, unsent)];
        let all = measure.done + measure.failed + measure.skipped + measure.unsent;
        remarks.extend(counts.into_iter().filter_map(|(count, what)| {
            Remark::counted(Weight::Wrong, format!("{}: {{}} {what}", measure.name), count, all)
        }));
    }
    remarks
}

fn checks(trials: &[TrialFinding]) -> Vec<Remark> {
    let checks = trials.iter().flat_map(|trial| trial.checks.iter().map(move |check| (trial.trial, check)));
    let wrong = checks.filter(|(_, check)| !check.agrees).map(|(trial, check)| {
        let (tool, own) = (in_full(check.tool), in_full(check.own));
        let text = format!("trial {trial}, {}: tool reports {tool}, pgstrata counted {own}", check.what);
        let words = format!("{}: the tool's figures differ from what pgstrata counted", check.what);
        Remark::plain(Weight::Wrong, words).alone(text)
    });
    wrong.collect()
}

/// A figure with all digits in which two of its kind may differ.
fn in_full(value: f64) -> String {
    if value.fract() == 0.0 && (0.0..1e15).contains(&value) {
        crate::units::grouped(value as u64)
    } else {
        format!("{value:.4}")
    }
}

/// Remarks on seconds that sources missed in the trials of a case.
fn missed(trials: &[TrialFinding]) -> Vec<Remark> {
    let mut missed: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for gap in trials.iter().flat_map(|trial| &trial.gaps).filter(|gap| gap.second.is_some()) {
        missed.entry(&gap.source).or_insert((0, &gap.reason)).0 += gap.rows;
    }
    let missed = missed.into_iter().map(|(source, (count, reason))| {
        Remark::with(Weight::Missing, format!("{source} missed {{}}: {reason}"), Number::Seconds(count))
    });
    missed.collect()
}

/// Remarks on sources absent throughout, once per run: usually the machine lacks them. A stack in memory has no
/// devices, and a workload without a server has no server statistics: that is no gap.
fn absent(cases: &[CaseSums]) -> Vec<Remark> {
    let mut absent: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let trials: Vec<&TrialFinding> = cases.iter().flat_map(|case| &case.trials).collect();
    for trial in &trials {
        for gap in trial.gaps.iter().filter(|gap| gap.second.is_none() && !is_of_course(&gap.source, trial)) {
            *absent.entry((&gap.source, &gap.reason)).or_default() += 1;
        }
    }
    let absent = absent.into_iter().map(|((source, why), count)| {
        let which = match count == trials.len() {
            true => "any trial".to_owned(),
            false => format!("{count} of {} trials", trials.len()),
        };
        Remark::plain(Weight::Missing, format!("no {source} in {which}: {why}"))
    });
    absent.collect()
}

/// True if a source has nothing to read in a trial of this kind.
fn is_of_course(source: &str, trial: &TrialFinding) -> bool {
    match (source, &trial.stack) {
        ("diskstats", Some(stack)) => {
            stack.devices().is_empty() && stack.promise(stack.data.as_ref(), Claim::Volatile).is_some()
        }
        ("postgres", _) => trial.server.is_none(),
        _ => false,
    }
}

/// Remarks on facts that differ between trials and should not.
fn differing_facts(trials: &[TrialFinding]) -> Vec<Remark> {
    let seen = by_key(trials.iter().flat_map(facts)).into_iter().map(|(what, values)| {
        // In the order in which they come.
        let mut known = BTreeSet::new();
        (what, values.into_iter().filter(|value| known.insert(value.clone())).collect::<Vec<String>>())
    });
    let differing = seen.filter(|(_, values)| values.len() > 1).map(|(what, values)| {
        let own = format!("its trials differ in {what}: {}", values.join("; "));
        Remark::plain(Weight::Unlike, format!("trials of a case differ in {what}")).alone(own)
    });
    differing.collect()
}

fn facts(trial: &TrialFinding) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    for (stack, base, of) in
        trial.stack.iter().flat_map(|stack| [(stack, &stack.data, "the data"), (stack, &stack.wal, "pg_wal")])
    {
        base.iter().for_each(|base| stack_facts(stack, base, of, &mut facts));
    }
    facts.extend(trial.knobs.iter().map(|(name, value)| (format!("the kernel's {name}"), value.clone())));
    if let Some(server) = &trial.server {
        facts.push(("the server's version".to_owned(), server.version.clone()));
        facts.extend(server.key_settings.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    facts
}

fn stack_facts(stack: &StackFacts, base: &BaseName, of: &str, facts: &mut Vec<(String, String)>) {
    if let Some(mount) = stack.mount_of(Some(base)) {
        facts.push((format!("the filesystem of {of}"), mount.fstype.clone()));
        let options = mount.options.iter().chain(&mount.super_options).cloned();
        facts.push((format!("the mount options of {of}"), options.collect::<Vec<_>>().join(",")));
    }
    for below in stack.devices_below(Some(base)) {
        let device = below.device;
        let at = format!("of {} below {of}", below.name());
        let values = [
            ("write cache", device.write_cache.map(|cache| cache.word().to_owned())),
            ("scheduler", device.scheduler.clone()),
            ("model", device.model.clone()),
            ("direct I/O", device.direct_io.map(|direct| direct.to_string())),
            ("request queue", device.nr_requests.map(|requests| requests.to_string())),
            ("read-ahead", device.read_ahead_kb.map(|kb| format!("{kb} KiB"))),
        ];
        let known = values.into_iter().filter_map(|(what, value)| Some((format!("the {what} {at}"), value?)));
        facts.extend(known);
    }
}

/// Remark on images whose blocks are allocated during the measurement.
fn sparse(trials: &[TrialFinding]) -> Option<Remark> {
    let mut stacks = trials.iter().filter_map(|trial| trial.stack.as_ref());
    let what = "sparse image: allocated while measured, most for copy-on-write";
    stacks.any(|stack| stack.nodes.iter().any(NodeFacts::is_sparse)).then(|| Remark::plain(Weight::Elsewhere, what))
}

/// Remark on stacks that had served other trials before.
fn age(trials: &[TrialFinding]) -> Option<Remark> {
    let before = trials.iter().filter_map(|trial| Some((trial.trial, trial.stack.as_ref()?.trials_before)));
    let aged: BTreeMap<u32, u32> = before.filter(|(_, before)| *before > 0).collect();
    let (which, most) = (numbered("trial", aged.keys()), aged.values().max()?);
    let own = format!("{which} ran on a used stack (earlier trials on it: up to {most})");
    Some(Remark::plain(Weight::Unlike, "trials ran on stacks used by earlier trials").alone(own))
}

/// Remarks on the run as a whole.
pub fn of_run(machines: &[MachineFinding], cases: &[CaseSums], found: &[CaseFinding], finished: bool) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if !finished {
        remarks.push(Remark::plain(Weight::Unfinished, "the run is not complete: figures may change"));
    }
    let some = cases.iter().any(|case| !case.trials.is_empty());
    if some && cases.iter().all(|case| case.trials.len() < 2) {
        let what = "one trial per case cannot separate cases: that takes three blocks or more";
        remarks.push(Remark::plain(Weight::SingleTrial, what));
    }
    remarks.extend(absent(cases));
    let hidden = found.iter().flat_map(|case| &case.durability.sight_ends);
    let hidden = hidden.map(|what| Remark::plain(Weight::Machine, what.as_str()));
    remarks.extend(distinct(machines.iter().flat_map(|found| machine(&found.host)).chain(hidden)));
    remarks
}

fn machine(host: &HostFacts) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if let Some(used) = host.swap_used_bytes.filter(|used| *used > 0) {
        let what = format!("{} of swap in use when the run began", Bytes(used));
        remarks.push(Remark::plain(Weight::Machine, what));
    }
    let governor = host.governor.as_deref().filter(|governor| !["", "performance"].contains(governor));
    remarks.extend(governor.map(|governor| {
        let what = format!("the CPU governor is {governor}: clock frequencies may vary between trials");
        Remark::plain(Weight::Machine, what)
    }));
    remarks
}
