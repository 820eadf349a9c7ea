//! The rules of the verdict, and those that look at the place alone.

use super::evidence::Evidence;
use super::findings::{FiredRule, VerdictKind};
use super::{rules_flush, rules_speed};
use crate::record::promise::{self, Claim, IN_MEMORY, is_in_memory};

/// Every rule that fires.
pub(super) fn fired(evidence: &Evidence) -> Vec<FiredRule> {
    let all = [
        memory_filesystem(evidence),
        memory_device(evidence),
        memory_below(evidence),
        mount_option(evidence),
        rules_flush::no_flush(evidence),
        rules_flush::no_write(evidence),
        rules_flush::growth_did_not_arrive(evidence),
        rules_speed::growth_beyond_the_bus(evidence),
        rules_speed::rotation(evidence),
        rules_speed::too_many_syncs(evidence),
        rules_speed::fast_flush(evidence),
        rules_speed::open_datasync_does_not_halve(evidence),
        rules_speed::two_writes_cost_more(evidence),
        rules_speed::flat_growth(evidence),
        rules_speed::journal(evidence),
    ];
    all.into_iter().flatten().collect()
}

/// A rule about a number.
pub(super) struct Measured {
    pub number: f64,
    pub threshold: f64,
    pub unit: &'static str,
}

/// Puts a fired rule together.
pub(super) fn rule(
    name: &str,
    speaks_for: Option<VerdictKind>,
    measured: Option<Measured>,
    source: &str,
    sentence: String,
) -> FiredRule {
    FiredRule {
        name: name.to_owned(),
        speaks_for,
        number: measured.as_ref().map(|measured| measured.number),
        threshold: measured.as_ref().map(|measured| measured.threshold),
        unit: measured.map_or("", |measured| measured.unit).to_owned(),
        source: source.to_owned(),
        sentence,
    }
}

fn memory_filesystem(evidence: &Evidence) -> Option<FiredRule> {
    let mount = evidence.record.place.mount.as_ref()?;
    IN_MEMORY.contains(&mount.fstype.as_str()).then(|| {
        let sentence = format!("the folder lies on {}, which keeps its files in memory", mount.fstype);
        rule("memory_filesystem", Some(VerdictKind::Memory), None, "mount table", sentence)
    })
}

fn memory_device(evidence: &Evidence) -> Option<FiredRule> {
    let device = evidence.record.place.devices.iter().find(|device| is_in_memory(device))?;
    let sentence = format!("{} is a block device in memory", device.name);
    Some(rule("memory_device", Some(VerdictKind::Memory), None, "the kernel's name of the device", sentence))
}

fn memory_below(evidence: &Evidence) -> Option<FiredRule> {
    let mount = evidence.record.place.mount.as_ref();
    let known = mount.is_some_and(|mount| IN_MEMORY.contains(&mount.fstype.as_str()));
    let end = evidence.record.place.ends.iter().find(|end| ends_in_memory(end)).filter(|_| !known)?;
    let sentence = format!("what lies below is in memory: {end}");
    Some(rule("memory_below", Some(VerdictKind::Memory), None, "mount table of the backing file", sentence))
}

fn mount_option(evidence: &Evidence) -> Option<FiredRule> {
    let mount = evidence.record.place.mount.as_ref()?;
    let promises = promise::of_mount(mount);
    let held_back = promises.iter().find(|promise| promise.claim == Claim::HoldsFlushesBack)?;
    let option = held_back.source.trim_start_matches("mount option ");
    let sentence = format!("mount option {option} of {}: the filesystem sends no flushes", mount.fstype);
    Some(rule("mount_option", Some(VerdictKind::NoFlushSeen), None, "mount table", sentence))
}

/// Whether the way down ended at a filesystem in memory, by the sentence that says where it ended.
fn ends_in_memory(end: &str) -> bool {
    IN_MEMORY.iter().any(|kind| end.contains(&format!("({kind})")))
}
