//! The step `settle`: waits until the machine is quiet after the previous trial and the preparation of this one.

use super::Trial;
use crate::error::{Context, Result};
use crate::host::time::{micros, now, sleep};
use crate::host::{Host, folders};
use crate::parse::{diskstats, meminfo};
use crate::provision::disk_probe;
use crate::record::disk_probe::DiskProbe;
use crate::record::window::{DeviceTraffic, SettleRecord};
use crate::run::session::Session;
use crate::run::window;
use crate::telemetry::processes::others_beside;
use std::collections::BTreeMap;
use std::time::Duration;

/// Interval over which device activity is observed.
const LOOK: Duration = Duration::from_millis(500);

/// Number of consecutive quiet intervals required.
const QUIET_LOOKS: u32 = 2;

/// Write rate of a quiet device at most: an idle server and the machine's own logs stay well below.
const QUIET_BYTES_PER_S: u64 = 1 << 20;

/// Busy share of a quiet device at most.
const QUIET_BUSY: f64 = 0.05;

/// Dirty bytes on a quiet machine at most.
const QUIET_DIRTY: u64 = 64 << 20;

/// Longest wait; for a short measurement, a third of its duration.
const LONGEST_US: u64 = 30_000_000;

/// Waits for quiet devices and few dirty pages, then probes the disk below the images.
pub(super) fn settle(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    wait(session, trial)?;
    let probe = probe_disk(&session.host, trial);
    trial.record.disk_probes.extend(probe);
    Ok(())
}

/// Waits for quiet devices and few dirty pages, and records the outcome.
pub(super) fn wait(session: &Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    let (_, measure_us) = window::expected_us(trial.case)?;
    let limit_us = (measure_us / 3).min(LONGEST_US);
    let begun = now();
    // Written to the page cache when the data were made; the copies on the stack are already synced.
    if let Some(template) = &trial.template {
        folders::sync_filesystem(&template.data).or_host(|| "write back what making the data left".to_owned())?;
    }
    let mut settled = SettleRecord { limit_us, ..SettleRecord::default() };
    let mut quiet_looks = 0;
    while quiet_looks < QUIET_LOOKS {
        settled.waited_us = micros(begun.elapsed());
        if settled.waited_us >= limit_us {
            break;
        }
        session.interrupt.check()?;
        look(session, trial, &mut settled)?;
        quiet_looks = if is_quiet(&settled) { quiet_looks + 1 } else { 0 };
    }
    settled.waited_us = micros(begun.elapsed());
    settled.quiet = quiet_looks >= QUIET_LOOKS;
    trial.record.settle = Some(settled);
    Ok(())
}

/// Probes the filesystem below the stack's images, or of its folder, and what CPU time others take. A failed probe is a gap:
/// the images may still work.
pub(super) fn probe_disk(host: &Host, trial: &mut Trial<'_>) -> Option<DiskProbe> {
    let folder = disk_probe::folder_of(&trial.case.stack)?;
    let begun = now();
    let (probe, others) = others_beside(host, || disk_probe::probe(&folder));
    let (others_cpu_us, whole_us) = (others.map(|(_, ns)| ns / 1000), Some(micros(begun.elapsed())));
    let probe = probe.map(|probe| DiskProbe { others_cpu_us, whole_us, ..probe });
    probe
        .map_err(|e| {
            let note = format!("the disk below the stack was not probed: {}", e.chain());
            if !trial.record.notes.contains(&note) {
                trial.record.notes.push(note);
            }
        })
        .ok()
}

fn is_quiet(seen: &SettleRecord) -> bool {
    seen.dirty_bytes.is_none_or(|dirty| dirty <= QUIET_DIRTY)
        && seen.devices.values().all(|traffic| {
            let seconds = traffic.wall_us.max(1) as f64 / 1e6;
            traffic.written_bytes as f64 / seconds <= QUIET_BYTES_PER_S as f64
                && traffic.busy_ms as f64 / 1e3 / seconds <= QUIET_BUSY
        })
}

/// Observes the lowest devices of the stack for one interval, and the dirty pages at its end.
fn look(session: &Session<'_>, trial: &Trial<'_>, settled: &mut SettleRecord) -> Result<()> {
    let host = &session.host;
    let devices = trial.stack()?.facts.devices().into_iter();
    let lowest = devices.filter(|(_, device)| device.stands_on_nothing == Some(true));
    let lowest: Vec<(u32, u32)> = lowest.map(|(_, device)| (device.major, device.minor)).collect();
    let before = counters(host, &lowest)?;
    let begun = now();
    sleep(LOOK);
    let wall_us = micros(begun.elapsed());
    let after = counters(host, &lowest)?;
    let traffic = after.into_iter().filter_map(|(name, (busy_ms, written))| {
        let (busy_before, written_before) = before.get(&name)?;
        let (busy_ms, written_bytes) = (busy_ms.saturating_sub(*busy_before), written.saturating_sub(*written_before));
        Some((name, DeviceTraffic { wall_us, busy_ms, written_bytes }))
    });
    settled.devices = traffic.collect();
    let memory = meminfo::parse(&host.read("/proc/meminfo")?)?;
    settled.dirty_bytes = memory.dirty_bytes.map(|dirty| dirty + memory.writeback_bytes.unwrap_or(0));
    Ok(())
}

/// Milliseconds busy and bytes written of devices, by kernel name.
fn counters(host: &Host, devices: &[(u32, u32)]) -> Result<BTreeMap<String, (u64, u64)>> {
    let all = diskstats::parse(&host.read("/proc/diskstats")?)?;
    let of_ours = all.into_iter().filter(|stats| devices.contains(&(stats.major, stats.minor)));
    Ok(of_ours.map(|stats| (stats.name, (stats.busy_ms, stats.write_bytes))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_quiet_with_idle_devices_and_few_dirty_pages() {
        let seen = |busy_ms, written_bytes, dirty| SettleRecord {
            dirty_bytes: Some(dirty),
            devices: BTreeMap::from([("vda".to_owned(), DeviceTraffic { wall_us: 500_000, busy_ms, written_bytes })]),
            ..SettleRecord::default()
        };
        assert!(is_quiet(&seen(20, 400 << 10, 10 << 20)));
        assert!(!is_quiet(&seen(30, 0, 0)), "busy");
        assert!(!is_quiet(&seen(0, 600 << 10, 0)), "written");
        assert!(!is_quiet(&seen(0, 0, 65 << 20)), "dirty");
        assert!(is_quiet(&SettleRecord::default()), "a stack in memory on a machine that does not tell");
    }
}
