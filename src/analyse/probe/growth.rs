//! Sync time as a function of the amount written before.

use super::findings::GrowthFinding;
use super::work::counts_writes;
use crate::record::probe::{Growth, ProbeRecord};
use crate::stats::outliers::median;
use std::collections::BTreeMap;

/// Findings by amount written, ascending.
pub(super) fn growth(record: &ProbeRecord) -> Vec<GrowthFinding> {
    let mut by_amount: BTreeMap<u64, Vec<&Growth>> = BTreeMap::new();
    for one in &record.growth {
        by_amount.entry(one.written_bytes).or_default().push(one);
    }
    by_amount.into_iter().map(|(bytes, tries)| of_amount(bytes, &tries, record)).collect()
}

fn of_amount(written_bytes: u64, tries: &[&Growth], record: &ProbeRecord) -> GrowthFinding {
    let times =
        [tries.iter().map(|one| one.write_ns as f64).collect(), tries.iter().map(|one| one.sync_ns as f64).collect()];
    let [write_ns, sync_ns] = times.map(|values: Vec<f64>| median(&values).unwrap_or(0.0).round() as u64);
    let [write_bytes_per_s, sync_bytes_per_s] =
        [write_ns, sync_ns].map(|ns| (written_bytes > 0).then(|| written_bytes as f64 / (ns.max(1) as f64 / 1e9)));
    let reached_device = reached(written_bytes, tries, record);
    GrowthFinding { written_bytes, sync_ns, sync_bytes_per_s, write_bytes_per_s, reached_device }
}

/// Share of the bytes seen at the level that received most: pass-through drivers may not count them.
fn reached(written_bytes: u64, tries: &[&Growth], record: &ProbeRecord) -> Option<f64> {
    let written = written_bytes as f64 * tries.len() as f64;
    let mut by_depth: BTreeMap<u32, f64> = BTreeMap::new();
    for one in tries {
        for (place, (device, counts)) in record.place.devices.iter().zip(&one.devices).enumerate() {
            if let Some(counts) = counts.filter(|_| counts_writes(record, place)) {
                *by_depth.entry(device.depth).or_default() += counts.write_bytes as f64;
            }
        }
    }
    let most = by_depth.into_values().reduce(f64::max)?;
    (written > 0.0).then(|| most / written)
}
