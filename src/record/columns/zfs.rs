//! Columns of ZFS: its cache, intent log and transaction groups. Only trials on a pool have them.

use super::{ColumnDef, counter, gauge};

columns! {
    /// kstat arcstats size: size of the ARC
    pub const ZFS_ARC_BYTES: ColumnDef = gauge("zfs_arc_bytes", "bytes");
    /// kstat arcstats c: size that the ARC aims at
    pub const ZFS_ARC_TARGET_BYTES: ColumnDef = gauge("zfs_arc_target_bytes", "bytes");
    /// kstat arcstats hits: reads found in the ARC
    pub const ZFS_ARC_HITS: ColumnDef = counter("zfs_arc_hits", "operations");
    /// kstat arcstats misses: reads not found in the ARC
    pub const ZFS_ARC_MISSES: ColumnDef = counter("zfs_arc_misses", "operations");
    /// kstat arcstats l2_hits: reads found on cache devices
    pub const ZFS_L2_HITS: ColumnDef = counter("zfs_l2_hits", "operations");
    /// kstat arcstats l2_misses: reads not found on cache devices
    pub const ZFS_L2_MISSES: ColumnDef = counter("zfs_l2_misses", "operations");
    /// kstat zil zil_commit_count: commits of the intent log, all pools
    pub const ZFS_ZIL_COMMITS: ColumnDef = counter("zfs_zil_commits", "operations");
    /// kstat zil zil_itx_count: records written by these commits
    pub const ZFS_ZIL_RECORDS: ColumnDef = counter("zfs_zil_records", "records");
    /// kstat zil zil_itx_metaslab_normal_bytes: records whose log blocks are on the data devices
    pub const ZFS_ZIL_POOL_BYTES: ColumnDef = counter("zfs_zil_pool_bytes", "bytes");
    /// kstat zil zil_itx_metaslab_slog_bytes: records whose log blocks are on log devices
    pub const ZFS_ZIL_LOG_BYTES: ColumnDef = counter("zfs_zil_log_bytes", "bytes");
    /// kstat POOL/txgs: transaction groups committed by the pools of the stack since row 0
    pub const ZFS_TXGS: ColumnDef = counter("zfs_txgs", "groups");
    /// kstat POOL/txgs stime: time in which these groups were synced
    pub const ZFS_TXG_SYNC_NS: ColumnDef = counter("zfs_txg_sync_ns", "ns");
    /// kstat POOL/txgs nwritten: bytes that these groups wrote to devices
    pub const ZFS_TXG_WRITE_BYTES: ColumnDef = counter("zfs_txg_write_bytes", "bytes");
}
