//! Workload and memory of a case, and the case of a trial.

use crate::cluster::setting;
use crate::error::{Error, Result};
use crate::record::case::{CaseSpec, TrialKey};
use crate::record::run::RunRecord;
use crate::units::Bytes;
use crate::workload::{self, MemorySizes, Workload};

/// Size of an empty cluster with its first WAL segments and catalogs.
pub(crate) const EMPTY_CLUSTER: u64 = 64 << 20;

/// The workload of this kind; the plan has checked that it exists.
///
/// # Errors
/// Otherwise a bug, or a run folder from a pgstrata with more workloads.
pub fn workload(kind: &str) -> Result<&'static dyn Workload> {
    let found = workload::ALL.iter().copied().find(|workload| workload.name() == kind);
    found.ok_or_else(|| Error::user(format!("this pgstrata has no workload `{kind}`")))
}

/// The case of a trial.
///
/// # Errors
/// When the run's record has no such case.
pub fn of_trial<'r>(record: &'r RunRecord, key: &TrialKey) -> Result<&'r CaseSpec> {
    let found = record.cases.iter().find(|case| case.id == key.case);
    found.ok_or_else(|| Error::store(format!("run.json orders the case `{}` but has none", key.case)))
}

/// Memory sizes that a case's data sizes refer to.
pub fn memory_of(case: &CaseSpec, total: Bytes) -> MemorySizes {
    let shared_buffers = case.postgres.as_ref().map_or(0, |postgres| {
        let value = postgres.asked("shared_buffers");
        value.and_then(|value| setting::bytes(value, BUFFER_BYTES)).unwrap_or(DEFAULT_SHARED_BUFFERS)
    });
    MemorySizes { total, shared_buffers: Bytes(shared_buffers) }
}

/// `shared_buffers` if the plan does not set it.
pub(crate) const DEFAULT_SHARED_BUFFERS: u64 = 128 << 20;

/// Unit of `shared_buffers` without a suffix, bytes.
pub(crate) const BUFFER_BYTES: u64 = 8192;
