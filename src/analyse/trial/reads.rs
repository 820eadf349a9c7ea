//! Columns of `seconds.parquet` that the analysis reads; no others are decoded. If a trial lacks a column, figures that
//! need it are absent.

use crate::record::columns::{self, ColumnDef, DeviceColumn};

/// Columns that every trial has, in groups.
pub const COLUMNS: [&[ColumnDef]; 4] = [
    &[
        columns::TIME_US,
        columns::CLIENT_DONE,
        columns::CLIENT_LATENCY_US_P50,
        columns::CLIENT_LATENCY_US_P99,
        columns::CLIENT_LATENCY_US_P999,
        columns::CLIENT_LATENCY_US_MAX,
        columns::CLIENT_IDLE_US_MAX,
        columns::MEM_DIRTY_BYTES,
        columns::MEM_WRITEBACK_BYTES,
        columns::MEM_CACHED_BYTES,
        columns::MEM_AVAILABLE_BYTES,
        columns::ZFS_ARC_TARGET_BYTES,
        columns::CPU_FULLEST_NS,
        columns::PSI_CPU_SOME_US,
        columns::PSI_IO_SOME_US,
        columns::PSI_IO_FULL_US,
        columns::PSI_MEMORY_SOME_US,
        columns::OTHERS_NAME,
        columns::OTHERS_CPU_NS,
        columns::PG_WAL_BYTES,
        columns::PG_WAL_RECORDS,
        columns::PG_WAL_FPI,
        columns::PG_WAL_SYNCS,
        columns::PG_XIDS,
        columns::PG_BUFFERS_CHECKPOINT,
        columns::PG_BUFFERS_BGWRITER,
        columns::PG_BUFFERS_BACKEND,
        columns::PG_CHECKPOINTS_TIMED,
        columns::PG_CHECKPOINTS_REQUESTED,
        columns::PG_BLKS_READ,
    ],
    &columns::CPU_TIMES,
    &columns::TOP_NAMES,
    &columns::TOP_CPU_NS,
];

/// Columns that every block device of a stack has.
pub const DEVICE_COLUMNS: [DeviceColumn; 10] = [
    columns::DEVICE_READS,
    columns::DEVICE_READ_BYTES,
    columns::DEVICE_READ_MS,
    columns::DEVICE_WRITES,
    columns::DEVICE_WRITE_BYTES,
    columns::DEVICE_WRITE_MS,
    columns::DEVICE_FLUSHES,
    columns::DEVICE_FLUSH_MS,
    columns::DEVICE_BUSY_MS,
    columns::DEVICE_QUEUE_MS,
];

/// True if the analysis reads the column with this name.
pub fn wanted(name: &str) -> bool {
    COLUMNS.iter().any(|group| group.iter().any(|column| column.name == name))
        || DEVICE_COLUMNS.iter().any(|family| family.includes(name))
}
