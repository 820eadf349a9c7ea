//! Columns of the server: counters of its statistics views, across supported versions.

use super::{ColumnDef, counter};

columns! {
    /// pg_current_wal_insert_lsn(): position in the WAL, including headers and the unused rest of switched
    /// segments; exact at the time of the reading
    pub const PG_WAL_LSN_BYTES: ColumnDef = counter("pg_wal_lsn_bytes", "bytes");
    /// pg_stat_wal.wal_bytes: WAL generated; before PostgreSQL 14 the same as pg_wal_lsn_bytes
    pub(crate) const PG_WAL_BYTES: ColumnDef = counter("pg_wal_bytes", "bytes");
    /// pg_stat_wal.wal_records; absent before PostgreSQL 14
    pub(crate) const PG_WAL_RECORDS: ColumnDef = counter("pg_wal_records", "records");
    /// pg_stat_wal.wal_fpi: full-page images in the WAL; absent before PostgreSQL 14
    pub(crate) const PG_WAL_FPI: ColumnDef = counter("pg_wal_fpi", "pages");
    /// pg_stat_wal.wal_buffers_full: writes because the WAL buffers were full; absent before PostgreSQL 14
    pub const PG_WAL_BUFFERS_FULL: ColumnDef = counter("pg_wal_buffers_full", "operations");
    /// pg_stat_wal.wal_write (14 to 17), pg_stat_io writes of object wal, context normal (18): writes of WAL to its
    /// files; absent before PostgreSQL 14
    pub const PG_WAL_WRITES: ColumnDef = counter("pg_wal_writes", "operations");
    /// pg_stat_wal.wal_write_time (14 to 17), pg_stat_io write_time of object wal (18): time in those writes;
    /// absent without track_wal_io_timing
    pub const PG_WAL_WRITE_US: ColumnDef = counter("pg_wal_write_us", "us");
    /// pg_stat_wal.wal_sync (14 to 17), pg_stat_io fsyncs of object wal, context normal (18): sync calls for WAL;
    /// none with open_datasync and open_sync, whose writes sync; absent before PostgreSQL 14
    pub(crate) const PG_WAL_SYNCS: ColumnDef = counter("pg_wal_syncs", "operations");
    /// pg_stat_wal.wal_sync_time (14 to 17), pg_stat_io fsync_time of object wal (18): time in those syncs; absent
    /// without track_wal_io_timing
    pub const PG_WAL_SYNC_US: ColumnDef = counter("pg_wal_sync_us", "us");
    /// txid_snapshot_xmax(txid_current_snapshot()): transaction ids of finished transactions, that is, of those
    /// that wrote, and of their subtransactions
    pub(crate) const PG_XIDS: ColumnDef = counter("pg_xids", "transactions");
    /// pg_stat_bgwriter.buffers_checkpoint (to 16), pg_stat_checkpointer.buffers_written (from 17): pages written
    /// by checkpoints
    pub(crate) const PG_BUFFERS_CHECKPOINT: ColumnDef = counter("pg_buffers_checkpoint", "pages");
    /// pg_stat_bgwriter.buffers_clean: pages written by the background writer
    pub const PG_BUFFERS_BGWRITER: ColumnDef = counter("pg_buffers_bgwriter", "pages");
    /// pg_stat_io writes and extends of relations by all but checkpointer and background writer (from 16; before,
    /// backends are counted at checkpoints alone): pages that backends wrote themselves
    pub(crate) const PG_BUFFERS_BACKEND: ColumnDef = counter("pg_buffers_backend", "pages");
    /// pg_stat_io fsyncs of relations by all but checkpointer and background writer (from 16; before, backends are
    /// counted at checkpoints alone): data files that backends synced themselves
    pub const PG_BACKEND_SYNCS: ColumnDef = counter("pg_backend_syncs", "operations");
    /// pg_stat_bgwriter.checkpoints_timed (to 16), pg_stat_checkpointer.num_timed (from 17): checkpoints because it
    /// was time
    pub(crate) const PG_CHECKPOINTS_TIMED: ColumnDef = counter("pg_checkpoints_timed", "checkpoints");
    /// pg_stat_bgwriter.checkpoints_req (to 16), pg_stat_checkpointer.num_requested (from 17): checkpoints because
    /// of max_wal_size or a command
    pub(crate) const PG_CHECKPOINTS_REQUESTED: ColumnDef = counter("pg_checkpoints_requested", "checkpoints");
    /// pg_stat_bgwriter.checkpoint_write_time (to 16), pg_stat_checkpointer.write_time (from 17): time in which
    /// checkpoints wrote, their pauses included
    pub const PG_CHECKPOINT_WRITE_US: ColumnDef = counter("pg_checkpoint_write_us", "us");
    /// pg_stat_bgwriter.checkpoint_sync_time (to 16), pg_stat_checkpointer.sync_time (from 17): time in which
    /// checkpoints synced data files
    pub const PG_CHECKPOINT_SYNC_US: ColumnDef = counter("pg_checkpoint_sync_us", "us");
    /// pg_stat_database.blks_read, all databases: pages that were not in shared_buffers
    pub(crate) const PG_BLKS_READ: ColumnDef = counter("pg_blks_read", "pages");
    /// pg_stat_database.blks_hit, all databases: pages that were in shared_buffers
    pub const PG_BLKS_HIT: ColumnDef = counter("pg_blks_hit", "pages");
    /// pg_stat_database.xact_commit, all databases, pgstrata's own (about 11 a second) included
    pub const PG_COMMITS: ColumnDef = counter("pg_commits", "transactions");
    /// pg_stat_database.xact_rollback, all databases
    pub const PG_ROLLBACKS: ColumnDef = counter("pg_rollbacks", "transactions");
    /// pg_stat_database.temp_bytes, all databases: written to temporary files
    pub const PG_TEMP_BYTES: ColumnDef = counter("pg_temp_bytes", "bytes");
}
