//! Raw results of probing a folder: operations, latencies, device counters. No rates, intervals or judgements: those
//! are computed from this, and can be recomputed.

use super::facts::{DeviceFacts, MountFacts};
use crate::record::claim::Promise;
use serde::{Deserialize, Serialize};

/// Version of the record. 1: the first.
pub const FORMAT: u32 = 1;

/// One probe.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata.
    pub tool_version: String,
    /// Start of the measurement, RFC 3339.
    pub started: String,
    /// Seed of the order of slices.
    pub seed: u64,
    /// Requested precision: half the width of an interval over its rate.
    pub precision: f64,
    /// Time allowed for measuring, microseconds.
    pub budget_us: u64,
    /// Time from the first slice to the last sync, microseconds, excluding the idle interval and the creation of files.
    pub elapsed_us: u64,
    /// The folder and the devices below it.
    pub place: PlaceFacts,
    /// Size of the file for the rows that pg_test_fsync has too; 16 MiB unless the filesystem has little free space.
    pub file_bytes: u64,
    /// Size of a WAL segment; 16 MiB unless the filesystem has little free space.
    pub segment_bytes: u64,
    /// Device activity before any file was made, while the probe was idle.
    pub idle: Idle,
    /// Device counters while the files were written and synced, as in [`Slice::devices`]: a counter that a write and
    /// its sync do not move is not counting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub test_sync: Vec<Option<DeviceCounts>>,
    /// Time the probe waited for a CPU; `None` if the kernel does not report it.
    pub cpu: Option<CpuWait>,
    /// Device activity of others, in the pauses between rounds of all rows, summed.
    pub pauses: Idle,
    /// Rows in table order.
    pub rows: Vec<RowRecord>,
    /// Sync time by amount written.
    pub growth: Vec<Growth>,
    /// Reason that this measurement ended early.
    pub growth_failure: Option<Failure>,
    /// The probe's own folder, if it could not be removed, with the reason.
    pub left_behind: Option<String>,
    /// Remarks for the reader.
    pub notes: Vec<String>,
}

/// The folder and its storage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlaceFacts {
    /// The folder, absolute.
    pub folder: String,
    /// The mount that holds it.
    pub mount: Option<MountFacts>,
    /// Block devices below it that a sync reaches; depth 0 is the device the filesystem is on.
    pub devices: Vec<DeviceFacts>,
    /// Dead ends on the way down other than a physical device: memory, or a place that cannot be inspected.
    pub ends: Vec<Promise>,
    /// Bytes available to the user before the files were made; `None` if the filesystem does not report them (ramfs).
    pub free_bytes: Option<u64>,
    /// `uname -r`.
    pub kernel: String,
    /// Hypervisor as the machine reports it, if it is virtual.
    pub hypervisor: Option<String>,
}

/// Device activity while the probe was idle.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// Duration, microseconds.
    pub elapsed_us: u64,
    /// Counters, as in [`Slice::devices`].
    pub devices: Vec<Option<DeviceCounts>>,
}

/// Waits for a CPU while the rows ran. A finished sync also waits for a CPU, which is not storage latency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuWait {
    /// Observed time, microseconds.
    pub elapsed_us: u64,
    /// Time in which the probe's own thread was runnable but not running, microseconds (`/proc/thread-self/schedstat`).
    pub own_us: Option<u64>,
    /// Time in which any process on the machine waited, microseconds (`/proc/pressure/cpu`).
    pub some_us: Option<u64>,
}

/// Growth of a device's counters over an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCounts {
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Flushes completed; `None` if the kernel does not count them (partitions, before Linux 5.5). No kernel counts FUA
    /// writes here: they are writes.
    pub flushes: Option<u64>,
    /// Reads completed.
    pub reads: u64,
}

impl DeviceCounts {
    pub(crate) fn combined(&self, other: &DeviceCounts, with: fn(u64, u64) -> u64) -> DeviceCounts {
        DeviceCounts {
            writes: with(self.writes, other.writes),
            write_bytes: with(self.write_bytes, other.write_bytes),
            flushes: self.flushes.zip(other.flushes).map(|(own, other)| with(own, other)),
            reads: with(self.reads, other.reads),
        }
    }
}

/// The part of the table that a row belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// pg_test_fsync: one write and its sync.
    OneWrite,
    /// pg_test_fsync: two writes and their sync.
    TwoWrites,
    /// pg_test_fsync: 16 kB by open_sync in smaller writes.
    OpenSyncSizes,
    /// pg_test_fsync: fsync before and after closing the descriptor.
    Descriptor,
    /// pg_test_fsync: a write without a sync.
    #[default]
    NotSynced,
    /// The way the server writes its WAL.
    Wal,
    /// Methods that PostgreSQL does not have.
    Newer,
}

/// How an operation is made durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// O_DSYNC.
    OpenDatasync,
    /// fdatasync(2).
    Fdatasync,
    /// fsync(2).
    Fsync,
    /// macOS and Windows only.
    FsyncWritethrough,
    /// O_SYNC.
    OpenSync,
    /// pwritev2(2) with RWF_DSYNC.
    RwfDsync,
    /// io_uring: a write linked to an fdatasync.
    IoUring,
    /// A shared mapping and msync(2).
    Msync,
    /// Not made durable.
    #[default]
    None,
}

impl Way {
    /// The values of `wal_sync_method`, in pg_test_fsync's order.
    pub const METHODS: [(Way, &str); 5] = [
        (Way::OpenDatasync, "open_datasync"),
        (Way::Fdatasync, "fdatasync"),
        (Way::Fsync, "fsync"),
        (Way::FsyncWritethrough, "fsync_writethrough"),
        (Way::OpenSync, "open_sync"),
    ];
}

/// State of the file that a WAL row writes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Segment {
    /// Overwrites an existing file (`wal_recycle = on`).
    Recycled,
    /// New, zero-filled and synced first (`wal_recycle = off`, `wal_init_zero = on`).
    ZeroFilled,
    /// New, extended to its size and not written (`wal_recycle = off`, `wal_init_zero = off`).
    Extended,
}

/// Definition of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSpec {
    /// Unique name, the same in every probe: `one_write.fdatasync`, `wal.fdatasync.recycled`.
    pub id: String,
    /// Part of the table.
    pub family: Family,
    /// Displayed label; that of pg_test_fsync if it has the row: `1 * 16kB open_sync write`.
    pub label: String,
    /// How it is made durable.
    pub way: Way,
    /// Size of one write, bytes.
    pub write_bytes: u32,
    /// Writes per operation.
    pub writes: u32,
    /// True if the writes bypass the page cache (O_DIRECT).
    pub direct: bool,
    /// Concurrent writer threads that share syncs.
    pub writers: u32,
    /// State of the file it writes through; `None` for rows that rewrite the same place.
    pub segment: Option<Segment>,
}

/// Results of one row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RowRecord {
    /// Definition of the row.
    pub spec: RowSpec,
    /// Reason that the row is unavailable here; nothing was measured.
    pub unavailable: Option<String>,
    /// Reason that it ended early; earlier results are kept, and it was not retried.
    pub failure: Option<Failure>,
    /// Slices in order.
    pub slices: Vec<Slice>,
    /// Latencies by second of the probe; only seconds with operations.
    pub seconds: Vec<SecondLatencies>,
    /// Slowest operations, slowest first; at most 16.
    pub slowest: Vec<Slow>,
    /// Time to make each new segment it consumed, microseconds; not part of any slice.
    pub segments_us: Vec<u64>,
}

/// A system call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The call: `write`, `fdatasync`.
    pub call: String,
    /// Error number on the probed system; `None` for a short write.
    pub errno: Option<i32>,
    /// Error name and message: `EIO: Input/output error`.
    pub message: String,
    /// Time of failure, microseconds since the first slice began.
    pub at_us: u64,
    /// Operations that the row had completed by then.
    pub after_operations: u64,
}

/// A short time in which one row ran alone. One operation before it is not counted: it pays for what the previous row
/// left in the page cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Start of its first operation, microseconds since the first slice began.
    pub at_us: u64,
    /// From that start to the end of its last operation, nanoseconds.
    pub elapsed_ns: u64,
    /// Operations completed, excluding failed ones.
    pub operations: u64,
    /// Syncs for these operations, if the number differs (group commit).
    pub syncs: Option<u64>,
    /// Operations covered by the device counters, if the number differs: includes those at the start and end of a
    /// group.
    pub device_operations: Option<u64>,
    /// Growth of the counters of `place.devices` over these operations, in the same order; `None` for a device without
    /// counters.
    pub devices: Vec<Option<DeviceCounts>>,
}

/// Latencies of one second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondLatencies {
    /// Second since the first slice began, from 0; operations count in the second they ended.
    pub second: u32,
    /// (latency in nanoseconds, count), ascending; latencies are rounded up by less than 1 %.
    pub latencies: Vec<(u64, u64)>,
}

/// A slow operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slow {
    /// Start, microseconds since the first slice began.
    pub at_us: u64,
    /// Exact latency, nanoseconds.
    pub latency_ns: u64,
}

/// One sync after a known amount of buffered writes to the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// Bytes written before the sync.
    pub written_bytes: u64,
    /// Time of the writes, nanoseconds.
    pub write_ns: u64,
    /// Time of the fdatasync, nanoseconds.
    pub sync_ns: u64,
    /// Start of the sync, microseconds since the first slice began.
    pub at_us: u64,
    /// Growth of the counters over writes and sync, as in [`Slice::devices`].
    pub devices: Vec<Option<DeviceCounts>>,
}
