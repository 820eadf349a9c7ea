//! What a reader should know before believing a figure.

use super::case::CaseSums;
use super::columns;
use super::findings::{BottleneckKind, CaseFinding, TrialFinding};
use crate::record::facts::{DeviceFacts, Fits, HostFacts, StackFacts, WriteCache};
use crate::record::run::RunRecord;
use crate::units::{Bytes, grouped, significant};
use std::collections::BTreeMap;

/// Share of the CPUs' time given to other guests from which that is said.
const STEAL_WORTH_SAYING: f64 = 0.02;
/// Share of one CPU that telemetry may cost before that is said: the promise of the manual.
const TELEMETRY_ALLOWANCE: f64 = 0.005;

/// Of one case. `found` is its finding without cautions.
#[must_use]
pub fn of_case(found: &CaseFinding, sums: &CaseSums) -> Vec<String> {
    let mut cautions = Vec::new();
    if sums.trials.is_empty() {
        return cautions;
    }
    let elsewhere = [BottleneckKind::Cpu, BottleneckKind::Lock, BottleneckKind::Client];
    if let Some(bottleneck) = found.bottleneck.as_ref().filter(|bottleneck| elsewhere.contains(&bottleneck.kind)) {
        cautions.push(format!("storage is not what this measured: {}", bottleneck.sentence));
    }
    cautions.extend(fits(found));
    cautions.extend(interval(found));
    cautions.extend(failures(found));
    cautions.extend(checks(&sums.trials));
    cautions.extend(missed(&sums.trials));
    cautions.extend(differing_facts(&sums.trials));
    cautions.extend(age(&sums.trials));
    if let Some(steal) = sums.machine.share_of(&[columns::CPU_STEAL]).filter(|steal| *steal >= STEAL_WORTH_SAYING) {
        cautions.push(format!("{:.0} % of the CPUs' time went to other guests of the hypervisor", steal * 100.0));
    }
    if sums.telemetry_share > TELEMETRY_ALLOWANCE {
        cautions.push(format!("telemetry cost {} % of one CPU", significant(sums.telemetry_share * 100.0)));
    }
    let torn = |trial: &TrialFinding| setting(trial, "full_page_writes") == Some("off");
    if sums.trials.iter().any(torn) {
        cautions.push("full_page_writes = off: a page torn by a power cut cannot be repaired".to_owned());
    }
    cautions
}

fn fits(found: &CaseFinding) -> Option<String> {
    let size = found.database_bytes.map_or_else(String::new, |bytes| format!(" ({})", Bytes(bytes)));
    match found.fits? {
        Fits::SharedBuffers => Some(format!("the data{size} fit into shared_buffers: no read reached the storage")),
        Fits::Memory => Some(format!("the data{size} fit into memory: reads came from the page cache")),
        Fits::Neither => None,
    }
}

fn interval(found: &CaseFinding) -> Option<String> {
    let rate = found.measures.iter().find_map(|measure| measure.rate)?;
    match (found.trials, rate.low) {
        (1, Some(_)) => Some("a single trial: its interval says nothing about the next one".to_owned()),
        (1, None) => Some("a single trial, too short for an interval".to_owned()),
        (_, None) => Some("its trials carry no interval".to_owned()),
        (_, Some(_)) => None,
    }
}

fn failures(found: &CaseFinding) -> Vec<String> {
    let mut texts = Vec::new();
    for measure in &found.measures {
        for (count, what) in [(measure.failed, "failed"), (measure.skipped, "were skipped, being late already")] {
            if count > 0 {
                let all = grouped(measure.done + measure.failed + measure.skipped);
                texts.push(format!("{}: {} of {all} operations {what}", measure.name, grouped(count)));
            }
        }
    }
    texts
}

fn checks(trials: &[TrialFinding]) -> Vec<String> {
    let mut texts = Vec::new();
    for trial in trials {
        for check in trial.checks.iter().filter(|check| !check.agrees) {
            let (tool, own) = (in_full(check.tool), in_full(check.own));
            texts
                .push(format!("trial {}: {} by the tool's own account {tool}, counted {own}", trial.trial, check.what));
        }
    }
    texts
}

/// A figure with all the digits in which two of its kind may differ.
fn in_full(value: f64) -> String {
    if value.fract() == 0.0 && (0.0..1e15).contains(&value) { grouped(value as u64) } else { format!("{value:.4}") }
}

/// Seconds that sources missed in the trials of a case.
fn missed(trials: &[TrialFinding]) -> Vec<String> {
    let mut missed: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for gap in trials.iter().flat_map(|trial| &trial.gaps).filter(|gap| gap.second.is_some()) {
        missed.entry(&gap.source).or_insert((0, &gap.reason)).0 += gap.rows;
    }
    let rows = |count: u64| if count == 1 { "1 second".to_owned() } else { format!("{} seconds", grouped(count)) };
    missed.into_iter().map(|(source, (count, reason))| format!("{source} missed {}: {reason}", rows(count))).collect()
}

/// Sources that were absent altogether, once for the run: it is mostly the machine that lacks them. A stack without
/// devices and a workload without a server have nothing to read there: that is no gap.
fn absent(cases: &[CaseSums]) -> Vec<String> {
    let mut absent: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let trials = || cases.iter().flat_map(|case| &case.trials);
    for trial in trials() {
        let devices = trial.stack.iter().chain(&trial.wal_stack).any(|stack| !stack.devices.is_empty());
        let of_course =
            |source: &str| (source == "diskstats" && !devices) || (source == "postgres" && trial.server.is_none());
        for gap in trial.gaps.iter().filter(|gap| gap.second.is_none() && !of_course(&gap.source)) {
            *absent.entry((&gap.source, &gap.reason)).or_default() += 1;
        }
    }
    let all = trials().count();
    let which = |count: usize| if count == all { "any trial".to_owned() } else { format!("{count} of {all} trials") };
    absent.into_iter().map(|((source, why), count)| format!("no {source} in {}: {why}", which(count))).collect()
}

/// Facts that should be the same in every trial and are not.
fn differing_facts(trials: &[TrialFinding]) -> Vec<String> {
    let mut seen: Vec<(String, Vec<String>)> = Vec::new();
    for trial in trials {
        for (what, value) in facts(trial) {
            match seen.iter_mut().find(|(known, _)| *known == what) {
                Some((_, values)) if values.contains(&value) => {}
                Some((_, values)) => values.push(value),
                None => seen.push((what, vec![value])),
            }
        }
    }
    let differing = seen.into_iter().filter(|(_, values)| values.len() > 1);
    differing.map(|(what, values)| format!("its trials differ in {what}: {}", values.join("; "))).collect()
}

fn facts(trial: &TrialFinding) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    for (stack, of) in [(&trial.stack, "the data"), (&trial.wal_stack, "pg_wal")] {
        if let Some(stack) = stack {
            stack_facts(stack, of, &mut facts);
        }
    }
    if let Some(server) = &trial.server {
        facts.push(("the server's version".to_owned(), server.version.clone()));
        facts.extend(server.key_settings.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    facts
}

fn stack_facts(stack: &StackFacts, of: &str, facts: &mut Vec<(String, String)>) {
    if let Some(mount) = &stack.mount {
        facts.push((format!("the filesystem of {of}"), mount.fstype.clone()));
        let options = mount.options.iter().chain(&mount.super_options).cloned();
        facts.push((format!("the mount options of {of}"), options.collect::<Vec<_>>().join(",")));
    }
    for device in &stack.devices {
        let at = format!("of the device {} below {of}", device.depth);
        let mut add = |what: &str, value: Option<String>| {
            facts.extend(value.map(|value| (format!("the {what} {at}"), value)));
        };
        add("write cache", device.write_cache.map(cache_word));
        add("scheduler", device.scheduler.clone());
        add("model", device.model.clone());
        add("direct I/O", device.direct_io.map(|direct| direct.to_string()));
        add("request queue", device_queue(device));
    }
}

fn cache_word(cache: WriteCache) -> String {
    match cache {
        WriteCache::WriteBack => "write back".to_owned(),
        WriteCache::WriteThrough => "write through".to_owned(),
    }
}

fn device_queue(device: &DeviceFacts) -> Option<String> {
    device.nr_requests.map(|requests| requests.to_string())
}

/// Stacks that had served other trials before.
fn age(trials: &[TrialFinding]) -> Option<String> {
    let aged: Vec<u32> = trials
        .iter()
        .filter(|trial| trial.stack.as_ref().is_some_and(|stack| stack.trials_before > 0))
        .map(|trial| trial.trial)
        .collect();
    let most = trials.iter().filter_map(|trial| Some(trial.stack.as_ref()?.trials_before)).max()?;
    if aged.is_empty() {
        return None;
    }
    Some(format!("{} ran on a used stack, which had served up to {most} before", trial_list(&aged)))
}

/// Of the run as a whole.
#[must_use]
pub fn of_run(run: &RunRecord, cases: &[CaseSums], finished: bool) -> Vec<String> {
    let mut cautions = Vec::new();
    if !finished {
        cautions.push("the run has not come to its end: figures may change".to_owned());
    }
    let some = cases.iter().any(|case| !case.trials.is_empty());
    if some && cases.iter().all(|case| case.trials.len() < 2) {
        cautions.push(
            "a single trial each: no difference between cases can be claimed; set blocks to 3 or more".to_owned(),
        );
    }
    let blocks = run.blocks as usize;
    for case in cases {
        let measured = case.trials.len();
        if measured > 0 && measured < blocks {
            cautions.push(format!("{} was measured in {measured} of {blocks} blocks", case.spec.id));
        }
    }
    cautions.extend(absent(cases));
    cautions.extend(machine(&run.host));
    cautions
}

fn machine(host: &HostFacts) -> Vec<String> {
    let mut texts = Vec::new();
    if let Some(used) = host.swap_used_bytes.filter(|used| *used > 0) {
        texts.push(format!("{} of swap were in use when the run began", Bytes(used)));
    }
    if let Some(governor) =
        host.governor.as_deref().filter(|governor| !governor.is_empty() && *governor != "performance")
    {
        texts.push(format!("the CPU governor is {governor}: clock frequencies may vary between trials"));
    }
    texts
}

fn setting<'a>(trial: &'a TrialFinding, name: &str) -> Option<&'a str> {
    trial.server.as_ref()?.key_settings.get(name).map(String::as_str)
}

fn trial_list(trials: &[u32]) -> String {
    let numbers: Vec<String> = trials.iter().map(u32::to_string).collect();
    if trials.len() == 1 { format!("trial {}", numbers[0]) } else { format!("trials {}", numbers.join(", ")) }
}
