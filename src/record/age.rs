//! Ageing of a stack before it was measured, and the resulting file layout.

use serde::{Deserialize, Serialize};

/// The ageing of one trial. Present in every trial whose stack has `age`, even if all amounts are 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgeRecord {
    /// Size of the files of user relations before, bytes: the unit of "times overwritten".
    pub data_bytes: u64,
    /// Pages of relation files read and rewritten unchanged.
    pub pages: Option<PageRewrites>,
    /// Pages written by a server under pgbench.
    pub bloat: Option<Bloat>,
    /// Files of PostgreSQL's sizes created and deleted.
    pub churn: Option<FileWork>,
    /// Files that fill the filesystem.
    pub fill: Option<FileWork>,
    /// Snapshots made while the filesystem was filled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<SnapshotWork>,
    /// The ZFS pool below the data at the end of ageing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolRoom>,
    /// True if the cluster was then copied to a fresh filesystem on the same devices.
    pub is_fresh: bool,
    /// Layout once the server had started; without a server, the filesystem's content at the end of ageing.
    pub layout: Option<Layout>,
}

/// Pages rewritten with the server stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRewrites {
    /// Bytes written.
    pub written_bytes: u64,
    /// Pages written per batch, in order, before each file of the batch was synced.
    pub batch_pages: u64,
    /// Batches.
    pub batches: u64,
    /// Wall time, microseconds.
    pub elapsed_us: u64,
}

/// Writes by a server under pgbench.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bloat {
    /// Bytes of data pages written, as the server counts them.
    pub written_bytes: u64,
    /// Transactions done.
    pub transactions: u64,
    /// Checkpoints requested, one after each batch of transactions.
    pub checkpoints: u64,
    /// Wall time, microseconds.
    pub elapsed_us: u64,
}

/// Files that were created, and some of them deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileWork {
    /// Files created.
    pub created: u64,
    /// Files deleted again.
    pub deleted: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes of the remaining files.
    pub left_bytes: u64,
    /// Size of each file if they are all equal, bytes.
    pub file_bytes: Option<u64>,
    /// Wall time, microseconds.
    pub elapsed_us: u64,
}

/// Snapshots that stay until the stack goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotWork {
    /// Snapshots made, one after each step of `fill`.
    pub made: u64,
    /// In use before the first file, as the layer with the snapshots counts it, bytes. Some include redundancy (raidz).
    pub used_before_bytes: u64,
    /// In use at the end, synced.
    pub used_after_bytes: u64,
    /// True if they are the filesystem's own. Snapshots of a volume below it hold blocks, not files: usage beyond the
    /// files is then not what they hold.
    #[serde(default)]
    pub of_filesystem: bool,
}

/// Space of a ZFS pool (`zpool list`). All figures include raidz parity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolRoom {
    /// Size of the pool, bytes.
    pub size_bytes: u64,
    /// Allocated, snapshots included, bytes.
    pub allocated_bytes: u64,
    /// Free, bytes.
    pub free_bytes: u64,
    /// Fragmentation of free space (FRAG), percent; `None` if the pool does not report it.
    pub fragmentation_percent: Option<u64>,
    /// Share allocated (CAP), percent.
    pub capacity_percent: u64,
}

/// Relations below this are too small for a number of extents to mean anything, bytes.
pub const LEAST_RELATION: u64 = 1 << 20;

/// File layout of a cluster, and the content of its filesystem.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// User relations, largest first.
    pub relations: Vec<RelationLayout>,
    /// Reason that their extents are unknown.
    pub not_told: Option<String>,
    /// Size of the filesystem as df counts it: used and available, bytes; `None` if it has none.
    pub size_bytes: Option<u64>,
    /// Available, bytes.
    pub free_bytes: Option<u64>,
    /// Logical size of all files of the cluster, bytes.
    pub cluster_bytes: u64,
    /// Space allocated for them (`st_blocks`), bytes.
    pub cluster_held_bytes: u64,
}

/// One relation, all its files together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelationLayout {
    /// Its name.
    pub name: String,
    /// Logical size of its main fork, bytes.
    pub bytes: u64,
    /// Extents (FIEMAP; records by `zdb` on ZFS), physically adjacent ones merged.
    pub extents: Option<u64>,
    /// Part of `bytes` shared with another file or snapshot, according to FIEMAP; 0 on ZFS, which does not report it.
    pub shared_bytes: u64,
    /// Part of `bytes` stored compressed or encrypted.
    pub encoded_bytes: u64,
    /// Part of `bytes` reserved and never written.
    pub unwritten_bytes: u64,
}
