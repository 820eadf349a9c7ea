//! The credibility rules; here those about the location alone.

use crate::analyse::findings::CredibilityKind;
use crate::analyse::probe::evidence::ProbeEvidence;
use crate::analyse::probe::findings::{FiredRule, rule};
use crate::analyse::probe::{rules_flush, rules_speed};
use crate::record::claim::Claim;
use crate::record::durability::{self, memory_filesystem};

/// Name of the rule about mount options that hold flushes back.
pub(crate) const MOUNT_OPTION: &str = "mount_option";

pub(super) fn fired(evidence: &ProbeEvidence) -> Vec<FiredRule> {
    let all = [
        memory_mount(evidence),
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

fn memory_mount(evidence: &ProbeEvidence) -> Option<FiredRule> {
    let mount = evidence.record.place.mount.as_ref()?;
    let row = memory_filesystem(&mount.fstype)?;
    let sentence = format!("the folder is on {}: {}", mount.fstype, row.why);
    Some(rule("memory_filesystem", Some(CredibilityKind::Memory), None, row.source, sentence))
}

fn memory_device(evidence: &ProbeEvidence) -> Option<FiredRule> {
    let (device, row) = evidence.record.place.devices.iter().find_map(|device| {
        durability::device(device, []).find(|row| row.claim == Claim::Volatile).map(|row| (device, row))
    })?;
    let sentence = format!("{} is a block device in memory: {}", device.name, row.why);
    Some(rule("memory_device", Some(CredibilityKind::Memory), None, row.source, sentence))
}

fn memory_below(evidence: &ProbeEvidence) -> Option<FiredRule> {
    let mount = evidence.record.place.mount.as_ref();
    let known = mount.is_some_and(|mount| memory_filesystem(&mount.fstype).is_some());
    let ends = evidence.record.place.ends.iter().filter(|_| !known);
    let end = ends.into_iter().find(|end| end.claim == Claim::Volatile)?;
    let sentence = format!("the storage below is in memory: {end}");
    Some(rule("memory_below", Some(CredibilityKind::Memory), None, "mount table of the backing file", sentence))
}

fn mount_option(evidence: &ProbeEvidence) -> Option<FiredRule> {
    let mount = evidence.record.place.mount.as_ref()?;
    let option = durability::mount_options(mount).into_iter().find(|(row, _)| row.claim == Claim::HoldsFlushesBack);
    let (row, what) = match (option, durability::never_flushes(&mount.fstype)) {
        (Some((row, option)), _) => (row, format!("mount option {option} of {}", mount.fstype)),
        (None, Some(row)) => (row, format!("filesystem {}", mount.fstype)),
        (None, None) => {
            let of_zfs = durability::zfs(mount).into_iter().map(|it| (it, "zfsprops(7), zfs(4)"));
            let below = evidence.record.place.ends.iter().cloned().map(|it| (it, "mount table of the backing file"));
            let (promise, source) = of_zfs.chain(below).find(|(it, _)| it.claim == Claim::HoldsFlushesBack)?;
            return Some(rule(MOUNT_OPTION, Some(CredibilityKind::NoFlushSeen), None, source, promise.to_string()));
        }
    };
    let sentence = format!("{what}: {}", row.why);
    Some(rule(MOUNT_OPTION, Some(CredibilityKind::NoFlushSeen), None, row.source, sentence))
}
