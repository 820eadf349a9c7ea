//! Estimated time and space for ageing.

use super::case::{EMPTY_CLUSTER, memory_of, workload};
use crate::error::Result;
use crate::plan::Plan;
use crate::record::case::CaseSpec;
use crate::units::Bytes;
use crate::{ageing, provision};

/// Random pages rewritten per second by an ordinary disk, in bytes.
const REWRITE_BYTES_PER_S: u64 = 50_000_000;

/// Time to age the stack of a case with this many bytes of data, plus the copy for the control at this speed,
/// microseconds.
pub fn us(case: &CaseSpec, data: u64, copy_bytes_per_s: u64) -> u64 {
    let [rewrite, pgbench, fill, churn] = ["rewrite", "pgbench", "fill", "churn"]
        .map(|key| case.age.integer(key).and_then(|n| u64::try_from(n).ok()).unwrap_or(0));
    let capacity = provision::stack::capacity(&case.stack, &case.stack.data).unwrap_or_default().0;
    let is_fresh = ageing::is_fresh(&case.age);
    // Work that would be lost with the filesystem is not done for the control.
    let of_filesystem = u64::from(!is_fresh);
    let pages = data.saturating_mul(rewrite * of_filesystem + pgbench);
    let files = (capacity / 100).saturating_mul((fill + 100 * churn) * of_filesystem);
    let copies = if is_fresh { data.saturating_mul(2) } else { 0 };
    us_at(pages, REWRITE_BYTES_PER_S).saturating_add(us_at(files.saturating_add(copies), copy_bytes_per_s))
}

/// Time for this many bytes at a speed, microseconds.
pub fn us_at(bytes: u64, bytes_per_s: u64) -> u64 {
    bytes.saturating_mul(1_000_000) / bytes_per_s
}

/// Size of the largest cluster to be moved to a fresh filesystem; it is parked in a folder beside the templates.
///
/// # Errors
/// For a workload that this program does not have.
pub fn aside_bytes(plan: &Plan, memory: Bytes) -> Result<u64> {
    let mut most = 0;
    for case in plan.cases.iter().filter(|case| case.postgres.is_some() && ageing::is_fresh(&case.age)) {
        let set = workload(&case.workload.kind)?.data_set(&case.workload.options, memory_of(case, memory));
        most = set.map_or(0, |set| set.expected.0).saturating_add(EMPTY_CLUSTER).max(most);
    }
    Ok(most)
}
