//! What a probe of a folder measured: operations, latencies, device counters. No rate, no interval, no judgement: those
//! are computed from this, and can be computed again.

use super::facts::{DeviceFacts, MountFacts};
use super::promise;
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
    /// When the measurement began, RFC 3339.
    pub started: String,
    /// Seed of the order of slices.
    pub seed: u64,
    /// Precision asked for: half an interval over its rate.
    pub precision: f64,
    /// Time allowed for measuring, microseconds.
    pub budget_us: u64,
    /// Time from the first slice to the last sync, microseconds; idle interval and the making of files are not in it.
    pub elapsed_us: u64,
    /// Where it was.
    pub place: PlaceFacts,
    /// Size of the file of the rows that pg_test_fsync has too; 16 MiB unless the filesystem has little free.
    pub file_bytes: u64,
    /// Size of a WAL segment; 16 MiB unless the filesystem has little free.
    pub segment_bytes: u64,
    /// The time before any file was made, in which the probe did nothing.
    pub idle: Idle,
    /// What the devices counted while the files were written and synced, as in [`Slice::devices`]: a counter that does
    /// not move under a write and its sync counts nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub test_sync: Vec<Option<DeviceCounts>>,
    /// What the CPUs let it wait for; `None` where the kernel does not tell.
    pub cpu: Option<CpuWait>,
    /// The pauses between the rounds through all rows, added up: what others did meanwhile.
    pub pauses: Idle,
    /// Its rows, in the order of the table.
    pub rows: Vec<RowRecord>,
    /// How long a sync takes after how much was written.
    pub growth: Vec<Growth>,
    /// How that ended early.
    pub growth_failure: Option<Failure>,
    /// The probe's own folder, where it could not be removed, with the reason.
    pub left_behind: Option<String>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// The folder and what lies below it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlaceFacts {
    /// The folder, absolute.
    pub folder: String,
    /// The mount that holds it.
    pub mount: Option<MountFacts>,
    /// Block devices below it that a sync reaches, depth 0 the one that the filesystem stands on.
    pub devices: Vec<DeviceFacts>,
    /// Where the way down ended before a device that stands on nothing: in memory, or where nothing more can be seen.
    pub ends: Vec<Promise>,
    /// Bytes that the user may still write, before the files were made; `None` where the filesystem does not tell (ramfs).
    pub free_bytes: Option<u64>,
    /// `uname -r`.
    pub kernel: String,
    /// What the machine says it is, where it is a virtual one.
    pub hypervisor: Option<String>,
}

impl PlaceFacts {
    /// What one of its devices promises.
    #[must_use]
    pub(crate) fn promises_of(&self, device: &DeviceFacts) -> Vec<Promise> {
        promise::of_device_among(device, &self.devices)
    }
}

/// What the devices did while the probe did nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// How long, microseconds.
    pub elapsed_us: u64,
    /// Counters, as in [`Slice::devices`].
    pub devices: Vec<Option<DeviceCounts>>,
}

/// What waited for a CPU while the rows ran. A sync that is done waits for one too, and is then no figure of the storage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuWait {
    /// For how long, microseconds.
    pub elapsed_us: u64,
    /// Time in which the probe's own thread could have run and did not, microseconds (`/proc/thread-self/schedstat`).
    pub own_us: Option<u64>,
    /// Time in which some process of the machine waited, microseconds (`/proc/pressure/cpu`).
    pub some_us: Option<u64>,
}

/// Growth of a device's counters over an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCounts {
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Flushes completed; `None` where the kernel does not count them (partitions, before Linux 5.5). FUA writes are
    /// counted by no kernel: they are writes.
    pub flushes: Option<u64>,
    /// Reads completed.
    pub reads: u64,
}

impl DeviceCounts {
    #[must_use]
    pub(crate) fn combined(&self, other: &DeviceCounts, with: fn(u64, u64) -> u64) -> DeviceCounts {
        DeviceCounts {
            writes: with(self.writes, other.writes),
            write_bytes: with(self.write_bytes, other.write_bytes),
            flushes: self.flushes.zip(other.flushes).map(|(own, other)| with(own, other)),
            reads: with(self.reads, other.reads),
        }
    }
}

/// Which part of the table a row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// pg_test_fsync: one write and its sync.
    OneWrite,
    /// pg_test_fsync: two writes and their sync.
    TwoWrites,
    /// pg_test_fsync: 16 kB by open_sync in pieces.
    OpenSyncSizes,
    /// pg_test_fsync: fsync before and after the descriptor is closed.
    Descriptor,
    /// pg_test_fsync: a write without a sync.
    NotSynced,
    /// As the server writes its WAL.
    Wal,
    /// Ways that PostgreSQL does not have.
    Newer,
}

/// How an operation is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// O_DSYNC.
    OpenDatasync,
    /// fdatasync(2).
    Fdatasync,
    /// fsync(2).
    Fsync,
    /// Of macOS and Windows alone.
    FsyncWritethrough,
    /// O_SYNC.
    OpenSync,
    /// pwritev2(2) with RWF_DSYNC.
    RwfDsync,
    /// io_uring: a write linked to an fdatasync.
    IoUring,
    /// A shared mapping and msync(2).
    Msync,
    /// Not at all.
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

/// What the file is that a WAL row walks through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Segment {
    /// Written before, written again (`wal_recycle = on`).
    Recycled,
    /// New, zero-filled and synced first (`wal_recycle = off`, `wal_init_zero = on`).
    ZeroFilled,
    /// New, extended to its size and not written (`wal_recycle = off`, `wal_init_zero = off`).
    Extended,
}

/// What a row does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSpec {
    /// Its name, unique and the same in every probe: `one_write.fdatasync`, `wal.fdatasync.recycled`.
    pub id: String,
    /// Which part of the table.
    pub family: Family,
    /// How it is shown; that of pg_test_fsync where it has the row: `1 * 16kB open_sync write`.
    pub label: String,
    /// How it is made durable.
    pub way: Way,
    /// Size of one write.
    pub write_bytes: u32,
    /// Writes in one operation.
    pub writes: u32,
    /// Whether the writes bypass the page cache (O_DIRECT).
    pub direct: bool,
    /// Threads that write at the same time and share syncs.
    pub writers: u32,
    /// What it walks through; `None` for rows that write the same place again and again.
    pub segment: Option<Segment>,
}

/// What one row measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowRecord {
    /// What it does.
    pub spec: RowSpec,
    /// Why it is not available here, in words; nothing was measured then.
    pub unavailable: Option<String>,
    /// How it ended early: what it had measured stays, and it was not tried again.
    pub failure: Option<Failure>,
    /// Its slices in order.
    pub slices: Vec<Slice>,
    /// Latencies by second of the probe, those with an operation only.
    pub seconds: Vec<SecondLatencies>,
    /// Its slowest operations, the slowest first; at most 16.
    pub slowest: Vec<Slow>,
    /// Time to make each new segment that it used up, microseconds; not in any slice.
    pub segments_us: Vec<u64>,
}

/// A system call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Which: `write`, `fdatasync`.
    pub call: String,
    /// Error number on the system that was probed; `None` for a write that came out short.
    pub errno: Option<i32>,
    /// Its name and words: `EIO: Input/output error`.
    pub message: String,
    /// When, microseconds since the first slice began.
    pub at_us: u64,
    /// Operations that the row had completed before.
    pub after_operations: u64,
}

/// A short time in which one row ran alone. One operation before it is not counted: it pays for what the row before left
/// in the page cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// When its first operation began, microseconds since the first slice began.
    pub at_us: u64,
    /// From there to the end of its last operation, nanoseconds.
    pub elapsed_ns: u64,
    /// Operations completed; a failed one is none.
    pub operations: u64,
    /// Syncs that these took, where it is another number (group commit).
    pub syncs: Option<u64>,
    /// Operations that the counters cover, where it is another number: those of a group's beginning and end too.
    pub device_operations: Option<u64>,
    /// Growth of the counters of `place.devices` over these operations, in their order; `None` for one that has none.
    pub devices: Vec<Option<DeviceCounts>>,
}

/// Latencies of one second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondLatencies {
    /// Second since the first slice began, from 0; operations are counted where they ended.
    pub second: u32,
    /// (latency in nanoseconds, how many), ascending; latencies are rounded up by less than 1 %.
    pub latencies: Vec<(u64, u64)>,
}

/// A slow operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slow {
    /// When it began, microseconds since the first slice began.
    pub at_us: u64,
    /// How long it took, nanoseconds, exactly.
    pub latency_ns: u64,
}

/// One sync after a known amount was written (buffered) into the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// Bytes written before.
    pub written_bytes: u64,
    /// Time of the writes, nanoseconds.
    pub write_ns: u64,
    /// Time of the fdatasync, nanoseconds.
    pub sync_ns: u64,
    /// When the sync began, microseconds since the first slice began.
    pub at_us: u64,
    /// Growth of the counters over writes and sync, as in [`Slice::devices`].
    pub devices: Vec<Option<DeviceCounts>>,
}
