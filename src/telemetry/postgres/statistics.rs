//! Where each figure is found in the statistics views of each server version, and one query for all figures.
//!
//! Pure. The views: pg_stat_wal since 14, its writes and syncs in pg_stat_io (since 16) from 18 on;
//! pg_stat_checkpointer split from pg_stat_bgwriter in 17; the backends' own writes in pg_stat_io since 16.

use crate::error::{Error, Result};
use crate::record::columns::{self, ColumnDef};

/// Oldest supported version, as `server_version_num`.
const OLDEST: u32 = 120_000;

/// One figure: its column, and its SQL by version: each expression with the `server_version_num` from which it applies,
/// oldest first; none before the first. The tables are those of [`tables`].
type Statistic = (ColumnDef, &'static [(u32, &'static str)]);

/// Every figure, in the order of the columns. Times that read zero because timing is off are NULL.
pub(super) const STATISTICS: &[Statistic] = &[
    (columns::PG_WAL_LSN_BYTES, &[(OLDEST, "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")]),
    (
        columns::PG_WAL_BYTES,
        &[(OLDEST, "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"), (140_000, "wal.wal_bytes")],
    ),
    (columns::PG_WAL_RECORDS, &[(140_000, "wal.wal_records")]),
    (columns::PG_WAL_FPI, &[(140_000, "wal.wal_fpi")]),
    (columns::PG_WAL_BUFFERS_FULL, &[(140_000, "wal.wal_buffers_full")]),
    (columns::PG_WAL_WRITES, &[(140_000, "wal.wal_write"), (180_000, "wal_io.writes")]),
    (
        columns::PG_WAL_WRITE_US,
        &[
            (140_000, "CASE WHEN current_setting('track_wal_io_timing')::bool THEN wal.wal_write_time * 1000 END"),
            (180_000, "CASE WHEN current_setting('track_wal_io_timing')::bool THEN wal_io.write_time * 1000 END"),
        ],
    ),
    (columns::PG_WAL_SYNCS, &[(140_000, "wal.wal_sync"), (180_000, "wal_io.fsyncs")]),
    (
        columns::PG_WAL_SYNC_US,
        &[
            (140_000, "CASE WHEN current_setting('track_wal_io_timing')::bool THEN wal.wal_sync_time * 1000 END"),
            (180_000, "CASE WHEN current_setting('track_wal_io_timing')::bool THEN wal_io.fsync_time * 1000 END"),
        ],
    ),
    (columns::PG_XIDS, &[(OLDEST, "txid_snapshot_xmax(txid_current_snapshot())")]),
    (
        columns::PG_BUFFERS_CHECKPOINT,
        &[(OLDEST, "bgwriter.buffers_checkpoint"), (170_000, "checkpointer.buffers_written")],
    ),
    (columns::PG_BUFFERS_BGWRITER, &[(OLDEST, "bgwriter.buffers_clean")]),
    (columns::PG_BUFFERS_BACKEND, &[(160_000, "backend_io.pages")]),
    (columns::PG_BACKEND_SYNCS, &[(160_000, "backend_io.fsyncs")]),
    (columns::PG_CHECKPOINTS_TIMED, &[(OLDEST, "bgwriter.checkpoints_timed"), (170_000, "checkpointer.num_timed")]),
    (
        columns::PG_CHECKPOINTS_REQUESTED,
        &[(OLDEST, "bgwriter.checkpoints_req"), (170_000, "checkpointer.num_requested")],
    ),
    (
        columns::PG_CHECKPOINT_WRITE_US,
        &[(OLDEST, "bgwriter.checkpoint_write_time * 1000"), (170_000, "checkpointer.write_time * 1000")],
    ),
    (
        columns::PG_CHECKPOINT_SYNC_US,
        &[(OLDEST, "bgwriter.checkpoint_sync_time * 1000"), (170_000, "checkpointer.sync_time * 1000")],
    ),
    (columns::PG_BLKS_READ, &[(OLDEST, "databases.blks_read")]),
    (columns::PG_BLKS_HIT, &[(OLDEST, "databases.blks_hit")]),
    (columns::PG_COMMITS, &[(OLDEST, "databases.xact_commit")]),
    (columns::PG_ROLLBACKS, &[(OLDEST, "databases.xact_rollback")]),
    (columns::PG_TEMP_BYTES, &[(OLDEST, "databases.temp_bytes")]),
];

/// The query for all figures of a version: one row, one column per figure in the order of [`STATISTICS`], whole numbers
/// or NULL. Unknown newer versions are treated like the newest known.
///
/// # Errors
/// For a version older than PostgreSQL 12.
pub fn statistics_sql(version_num: u32) -> Result<String> {
    if version_num < OLDEST {
        let message = format!("server version {version_num} is not supported; statistics need version 12 or later");
        return Err(Error::host(message));
    }
    let expressions = STATISTICS.iter().map(|(column, expressions)| {
        let known = expressions.iter().rev().find(|(since, _)| *since <= version_num);
        let sql = known.map_or_else(|| "NULL".to_owned(), |(_, sql)| format!("({sql})"));
        format!("{sql}::bigint AS {}", column.name)
    });
    let expressions: Vec<String> = expressions.collect();
    Ok(format!("SELECT {} FROM {}", expressions.join(", "), tables(version_num).join(", ")))
}

/// The tables of a version, each with a single row.
fn tables(version_num: u32) -> Vec<&'static str> {
    let known = [
        (
            OLDEST,
            "(SELECT sum(blks_read) AS blks_read, sum(blks_hit) AS blks_hit, sum(xact_commit) AS xact_commit, \
             sum(xact_rollback) AS xact_rollback, sum(temp_bytes) AS temp_bytes FROM pg_stat_database) AS databases",
        ),
        (OLDEST, "pg_stat_bgwriter AS bgwriter"),
        (140_000, "pg_stat_wal AS wal"),
        (170_000, "pg_stat_checkpointer AS checkpointer"),
        (160_000, if version_num >= 180_000 { BACKEND_IO_18 } else { BACKEND_IO_16 }),
        (180_000, WAL_IO_18),
    ];
    known.into_iter().filter(|(since, _)| *since <= version_num).map(|(_, table)| table).collect()
}

/// In 16 and 17 an operation of pg_stat_io is one page (op_bytes).
const BACKEND_IO_16: &str = "(SELECT sum(coalesce(writes, 0) + coalesce(extends, 0)) AS pages, sum(fsyncs) AS fsyncs \
    FROM pg_stat_io WHERE object = 'relation' AND backend_type NOT IN ('checkpointer', 'background writer')) AS backend_io";

/// In 18 an operation may cover several pages, and bytes are counted separately.
const BACKEND_IO_18: &str = "(SELECT sum(coalesce(write_bytes, 0) + coalesce(extend_bytes, 0)) \
    / current_setting('block_size')::bigint AS pages, sum(fsyncs) AS fsyncs \
    FROM pg_stat_io WHERE object = 'relation' AND backend_type NOT IN ('checkpointer', 'background writer')) AS backend_io";

/// Excludes the creation of new WAL files (context init), as pg_stat_wal did before 18.
const WAL_IO_18: &str = "(SELECT sum(writes) AS writes, sum(write_time) AS write_time, sum(fsyncs) AS fsyncs, \
    sum(fsync_time) AS fsync_time FROM pg_stat_io WHERE object = 'wal' AND context = 'normal') AS wal_io";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::throwaway_server::{ThrowawayServer, installations};

    fn expression(version_num: u32, name: &str) -> String {
        let sql = statistics_sql(version_num).unwrap();
        let select = sql.split(" FROM ").next().unwrap().strip_prefix("SELECT ").unwrap().to_owned();
        let end = format!("::bigint AS {name}");
        let found = select.split(", (").flat_map(|part| part.split(", NULL")).find(|part| part.ends_with(&end));
        found
            .unwrap_or_else(|| panic!("{name} in {sql}"))
            .strip_suffix(&end)
            .unwrap()
            .trim_matches(['(', ')'])
            .to_owned()
    }

    #[test]
    fn postgres_12_and_13_report_wal_only_by_position() {
        for version in [120_022, 130_018] {
            let sql = statistics_sql(version).unwrap();
            assert!(
                !sql.contains("pg_stat_wal") && !sql.contains("pg_stat_io") && !sql.contains("pg_stat_checkpointer")
            );
            assert!(
                sql.contains("pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0'))::bigint AS pg_wal_bytes"),
                "{sql}"
            );
            assert!(sql.contains("NULL::bigint AS pg_wal_syncs"), "{sql}");
            assert!(sql.contains("NULL::bigint AS pg_buffers_backend"), "{sql}");
        }
    }

    #[test]
    fn postgres_14_to_16_read_wal_from_pg_stat_wal() {
        for version in [140_015, 150_018, 160_002] {
            let sql = statistics_sql(version).unwrap();
            assert!(sql.contains("pg_stat_wal AS wal") && !sql.contains("pg_stat_checkpointer"), "{sql}");
            assert_eq!(sql.contains("pg_stat_io"), version >= 160_000, "{sql}");
            assert_eq!(expression(version, "pg_wal_bytes"), "wal.wal_bytes");
            assert_eq!(expression(version, "pg_wal_syncs"), "wal.wal_sync");
            assert_eq!(expression(version, "pg_checkpoints_timed"), "bgwriter.checkpoints_timed");
        }
    }

    #[test]
    fn postgres_17_reads_checkpoints_and_backend_writes_from_new_views() {
        let sql = statistics_sql(170_004).unwrap();
        assert!(sql.contains("sum(coalesce(writes, 0) + coalesce(extends, 0)) AS pages"), "{sql}");
        assert_eq!(expression(170_004, "pg_wal_syncs"), "wal.wal_sync");
        assert_eq!(expression(170_004, "pg_buffers_backend"), "backend_io.pages");
        assert_eq!(expression(170_004, "pg_checkpoints_requested"), "checkpointer.num_requested");
        assert_eq!(expression(170_004, "pg_buffers_bgwriter"), "bgwriter.buffers_clean");
    }

    #[test]
    fn postgres_18_reads_wal_io_from_pg_stat_io() {
        for version in [180_000, 190_000] {
            let sql = statistics_sql(version).unwrap();
            assert!(sql.contains("write_bytes") && sql.contains("object = 'wal' AND context = 'normal'"), "{sql}");
            assert_eq!(expression(version, "pg_wal_syncs"), "wal_io.fsyncs");
            assert_eq!(expression(version, "pg_wal_bytes"), "wal.wal_bytes");
            assert!(!sql.contains("wal.wal_write") && !sql.contains("wal.wal_sync"), "{sql}");
        }
    }

    #[test]
    fn a_version_before_12_is_refused() {
        assert!(statistics_sql(110_022).unwrap_err().to_string().contains("110022"));
    }

    /// psql's answer to the statistics query, as `(column, text)`; an empty text is NULL.
    fn ask(server: &ThrowawayServer) -> Vec<(&'static str, String)> {
        let version_num = server.psql("SHOW server_version_num").trim().parse().unwrap();
        let line = server.psql(&statistics_sql(version_num).unwrap());
        let values: Vec<String> = line.trim_end_matches('\n').split('|').map(str::to_owned).collect();
        assert_eq!(values.len(), STATISTICS.len(), "{line}");
        STATISTICS.iter().map(|(column, _)| column.name).zip(values).collect()
    }

    fn number(answer: &[(&str, String)], name: &str) -> u64 {
        let (_, text) = answer.iter().find(|(column, _)| *column == name).unwrap();
        text.parse().unwrap_or_else(|_| panic!("{name} is `{text}` in {answer:?}"))
    }

    #[test]
    fn real_servers_answer_and_their_counters_follow_the_work() {
        for bin in installations() {
            let server = ThrowawayServer::start(&bin, "-c track_wal_io_timing=on");
            let before = ask(&server);
            server.psql("CREATE TABLE t AS SELECT g, repeat('x', 500) FROM generate_series(1, 20000) g");
            server.psql("CHECKPOINT");
            server.psql("SELECT count(*) FROM t");
            let after = ask(&server);
            let grown = |name: &str| number(&after, name) - number(&before, name);
            assert!(grown("pg_wal_lsn_bytes") > 10_000_000, "{after:?}");
            assert!(grown("pg_wal_bytes") > 10_000_000, "{after:?}");
            let known = after.iter().any(|(name, text)| *name == "pg_buffers_backend" && !text.is_empty());
            let (by_backends, least) = if known { (grown("pg_buffers_backend"), 1_000) } else { (0, 0) };
            assert!(grown("pg_buffers_checkpoint") + by_backends > least, "{after:?}");
            assert_eq!(grown("pg_checkpoints_requested"), 1, "{after:?}");
            for name in
                ["pg_wal_records", "pg_wal_syncs", "pg_wal_writes", "pg_wal_write_us", "pg_commits", "pg_blks_hit"]
            {
                assert!(grown(name) > 0, "{name}: {before:?} {after:?}");
            }
        }
    }

    #[test]
    fn timings_the_server_does_not_track_are_absent_not_zero() {
        for bin in installations() {
            let server = ThrowawayServer::start(&bin, "-c track_wal_io_timing=off");
            let answer = ask(&server);
            let untimed: Vec<&str> =
                answer.iter().filter(|(_, text)| text.is_empty()).map(|(column, _)| *column).collect();
            // The backends' own writes are absent before 16.
            let before_16 = ["pg_wal_write_us", "pg_wal_sync_us", "pg_buffers_backend", "pg_backend_syncs"];
            assert!(untimed == before_16 || untimed == before_16[..2], "{}: {untimed:?}", bin.display());
        }
    }
}
