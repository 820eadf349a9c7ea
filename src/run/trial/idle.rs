//! Watches other activity on the devices below a stack while the trial is idle, between building and loading.
//!
//! Flushes by others are counted like ours. On an existing folder nothing else distinguishes the two.

use crate::error::Result;
use crate::host::Host;
use crate::host::time::{micros, now, sleep};
use crate::parse::diskstats;
use crate::record::built::StackFacts;
use crate::record::facts::DeviceFacts;
use crate::record::probe::DeviceCounts;
use crate::record::stack::BaseName;
use crate::record::trial::IdleTraffic;
use crate::run::session::Session;
use std::collections::BTreeMap;
use std::time::Duration;

/// Duration. Short, because every trial pays for it: bounds on the later rate follow from how few were seen.
const WATCHED: Duration = Duration::from_secs(1);
/// The layer that shares its device with others and has no device of its own above it.
const SHARED: &str = "directory";
/// How often the wait checks for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Watches the devices below an existing folder; `None` for a stack that is not on one.
///
/// # Errors
/// Interrupted.
pub(super) fn watch(session: &Session<'_>, stack: &StackFacts) -> Result<Option<IdleTraffic>> {
    let host = &session.host;
    if stack.nodes.iter().all(|node| node.layer.as_deref() != Some(SHARED)) {
        return Ok(None);
    }
    // Only the stack writes to what it has built.
    let devices = stack.devices().into_iter();
    let found = devices.filter(|(name, _)| stack.node(name.node()).is_some_and(|node| node.layer.is_none()));
    let shared: Vec<(BaseName, &DeviceFacts)> = found.collect();
    let (before, begun) = (counts(host, &shared), now());
    while begun.elapsed() < WATCHED {
        session.interrupt.check()?;
        sleep(POLL_INTERVAL.min(WATCHED.saturating_sub(begun.elapsed())));
    }
    let elapsed_us = micros(begun.elapsed());
    let after = counts(host, &shared);
    let grown = after.into_iter().filter_map(|(name, after)| {
        let growth = after.combined(before.get(&name)?, u64::wrapping_sub);
        Some((name, growth))
    });
    Ok(Some(IdleTraffic { elapsed_us, devices: grown.collect() }))
}

fn counts(host: &Host, devices: &[(BaseName, &DeviceFacts)]) -> BTreeMap<String, DeviceCounts> {
    let counted = devices.iter().filter_map(|(name, device)| {
        let stat = diskstats::parse_stat(&host.read_optional(format!("{}/stat", device.sysfs_folder()))?).ok()?;
        // Partitions show flushes as 0: their disk counts them.
        let flushes = stat.flushes.filter(|_| device.counts_flushes != Some(false));
        let counts = DeviceCounts { writes: stat.writes, write_bytes: stat.write_bytes, flushes, reads: stat.reads };
        Some((name.0.clone(), counts))
    });
    counted.collect()
}
