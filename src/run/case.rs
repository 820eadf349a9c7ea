//! Workload and memory of a case.

use crate::cluster::setting;
use crate::error::{Error, Result};
use crate::record::case::CaseSpec;
use crate::units::Bytes;
use crate::workload::{self, Memory, Workload};

/// Size of an empty cluster with its first WAL segments and catalogs.
pub(crate) const EMPTY_CLUSTER: u64 = 64 << 20;

/// The workload of this kind; the plan has checked that it exists.
///
/// # Errors
/// Otherwise a bug, or a run folder from a pgstrata with more workloads.
pub fn workload(kind: &str) -> Result<&'static dyn Workload> {
    workload::ALL
        .iter()
        .copied()
        .find(|w| w.name() == kind)
        .ok_or_else(|| Error::user(format!("this pgstrata has no workload `{kind}`")))
}

/// Memory sizes that a case's data sizes refer to.
pub fn memory_of(case: &CaseSpec, total: Bytes) -> Memory {
    let set = case.postgres.as_ref().map(|postgres| {
        let value = postgres.asked("shared_buffers");
        value.and_then(|value| setting::bytes(value, BUFFER_BYTES)).unwrap_or(DEFAULT_SHARED_BUFFERS)
    });
    Memory { total, shared_buffers: Bytes(set.unwrap_or(0)) }
}

/// `shared_buffers` if the plan does not set it.
pub(crate) const DEFAULT_SHARED_BUFFERS: u64 = 128 << 20;

/// Unit of `shared_buffers` without a suffix, bytes.
pub(crate) const BUFFER_BYTES: u64 = 8192;
