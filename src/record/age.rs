//! What was done to a stack to age it before it was measured, and how its files then lay.

use serde::{Deserialize, Serialize};

/// The ageing of one trial. There in every trial whose stack has `age`, also where the amounts are 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgeRecord {
    /// Size of the files of user relations before, bytes: the unit of "times overwritten".
    pub data_bytes: u64,
    /// Pages of relation files that were read and written back with the same bytes.
    pub pages: Option<PageRewrites>,
    /// Pages that a server wrote under pgbench.
    pub bloat: Option<Bloat>,
    /// Files of PostgreSQL's sizes that were created and deleted.
    pub churn: Option<FileWork>,
    /// Files that fill the filesystem.
    pub fill: Option<FileWork>,
    /// Snapshots that were made while the filesystem was filled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<SnapshotWork>,
    /// The ZFS pool below the data when ageing had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolRoom>,
    /// Whether the cluster was then copied to a fresh filesystem on the same devices.
    pub is_fresh: bool,
    /// How it all lay when the server had started; without a server, what the filesystem held when ageing had ended.
    pub layout: Option<Layout>,
}

/// Pages that were rewritten with the server stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRewrites {
    /// Bytes written.
    pub written_bytes: u64,
    /// Pages that were written together, in order, before each file of the batch was synced.
    pub batch_pages: u64,
    /// Batches.
    pub batches: u64,
    /// Wall time, microseconds.
    pub elapsed_us: u64,
}

/// What pgbench made a server write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bloat {
    /// Bytes of data pages that the server wrote, as it counts them.
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
    /// Of these, deleted again.
    pub deleted: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes of the files that were left.
    pub left_bytes: u64,
    /// Size of the files where they have one size, bytes.
    pub file_bytes: Option<u64>,
    /// Wall time, microseconds.
    pub elapsed_us: u64,
}

/// Snapshots that stay until the stack goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotWork {
    /// Snapshots made, one after each step of `fill`.
    pub made: u64,
    /// In use before the first file, as the layer with the snapshots counts it, bytes. Redundancy counts on some (raidz).
    pub used_before_bytes: u64,
    /// In use at the end, synced.
    pub used_after_bytes: u64,
    /// Whether they are the filesystem's own. Those of a volume below it hold blocks, not files: what is in use beyond the
    /// files is then not what they hold.
    #[serde(default)]
    pub of_filesystem: bool,
}

/// What a ZFS pool says of its room (`zpool list`). Parity of raidz counts in all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolRoom {
    /// Size of the pool, bytes.
    pub size_bytes: u64,
    /// Of that, allocated, snapshots included, bytes.
    pub allocated_bytes: u64,
    /// Of that, free, bytes.
    pub free_bytes: u64,
    /// How fragmented the free space is (FRAG), percent; `None` where the pool does not tell.
    pub fragmentation_percent: Option<u64>,
    /// Share allocated (CAP), percent.
    pub capacity_percent: u64,
}

/// Relations below this are too small for a number of extents to mean anything, bytes.
pub const LEAST_RELATION: u64 = 1 << 20;

/// How the files of a cluster lay, and what its filesystem held.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// The user relations, the largest first.
    pub relations: Vec<RelationLayout>,
    /// Why their extents are not known.
    pub not_told: Option<String>,
    /// Size of the filesystem as df counts it: used and available, bytes; `None` where it has none.
    pub size_bytes: Option<u64>,
    /// Of that, available, bytes.
    pub free_bytes: Option<u64>,
    /// Logical size of all files of the cluster, bytes.
    pub cluster_bytes: u64,
    /// What the filesystem holds allocated for them (`st_blocks`), bytes.
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
    /// Of `bytes`, shared with another file or snapshot, as FIEMAP tells; 0 on ZFS, which does not.
    pub shared_bytes: u64,
    /// Of `bytes`, stored compressed or encrypted.
    pub encoded_bytes: u64,
    /// Of `bytes`, reserved and never written.
    pub unwritten_bytes: u64,
}
