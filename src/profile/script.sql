-- What a PostgreSQL server asks of its storage: read-only counters, settings and samples of sessions, as sums.
-- Run it with psql 11 or newer as a member of pg_monitor, straight to the server and not through a pooler:
--     psql -X -f p.sql > out
-- It prints no name of a table, database, user or host, and no SQL text. Transactions are read only and get no
-- transaction id, a statement ends after 5 seconds, no setting of the server changes, and no file is written.
\set QUIET on
\set ON_ERROR_STOP off
\set AUTOCOMMIT on
\pset pager off
\pset format unaligned
\pset tuples_only on
\pset fieldsep ' '
SET application_name = 'pgstrata-profile';
SET default_transaction_read_only = on;
SET statement_timeout = '5s';
SET lock_timeout = '1s';
SET idle_in_transaction_session_timeout = '10s';
SET search_path = pg_catalog;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
-- From version 17 on.
SELECT set_config(name, '10s', false) FROM pg_settings WHERE name = 'transaction_timeout';
\echo pgstrata profile 1
SELECT 'pgstrata state server', json_build_object('standby', pg_is_in_recovery(),
    'sees_sessions', pg_has_role('pg_read_all_stats', 'USAGE'));
\if :ERROR \echo pgstrata unseen server :SQLSTATE \endif
SELECT 'pgstrata settings', json_object_agg(name, current_setting(name) ORDER BY name)
FROM pg_settings
WHERE name IN ('autovacuum', 'block_size', 'checkpoint_completion_target', 'checkpoint_timeout', 'commit_delay',
    'data_checksums', 'effective_io_concurrency', 'fsync', 'full_page_writes', 'huge_pages', 'io_method',
    'max_connections', 'max_wal_size', 'min_wal_size', 'server_version', 'server_version_num', 'shared_buffers',
    'synchronous_commit', 'track_io_timing', 'track_wal_io_timing', 'wal_block_size', 'wal_buffers', 'wal_compression', 'wal_init_zero', 'wal_level',
    'wal_log_hints', 'wal_recycle', 'wal_segment_size', 'wal_sync_method', 'work_mem');
\if :ERROR \echo pgstrata unseen settings :SQLSTATE \endif
SELECT 'pgstrata state sizes', json_build_object('databases_bytes', sum(pg_database_size(oid))) FROM pg_database;
\if :ERROR \echo pgstrata unseen sizes :SQLSTATE \endif
SELECT 'pgstrata state wal_folder', json_build_object('bytes', sum(size), 'files', count(*)) FROM pg_ls_waldir();
\if :ERROR \echo pgstrata unseen wal_folder :SQLSTATE \endif
-- What this version and this database have.
SELECT to_regclass('pg_catalog.pg_stat_wal') IS NOT NULL AS has_wal,
       to_regclass('pg_catalog.pg_stat_io') IS NOT NULL AS has_io,
       to_regclass('pg_catalog.pg_stat_checkpointer') IS NOT NULL AS has_checkpointer,
       statements <> '' AS has_statements, statements, statements_reset, statements_dealloc,
       has_function_privilege('pg_catalog.pg_control_checkpoint()', 'EXECUTE') AS has_control
FROM (SELECT coalesce(max(format('%I.pg_stat_statements(false)', nspname)), '') AS statements,
             -- From version 14 on, if the extension was updated.
             coalesce(max(format('(SELECT stats_reset FROM %I.pg_stat_statements_info)', nspname))
                          FILTER (WHERE relname IS NOT NULL), 'NULL') AS statements_reset,
             coalesce(max(format('(SELECT dealloc FROM %I.pg_stat_statements_info)', nspname))
                          FILTER (WHERE relname IS NOT NULL), 'NULL') AS statements_dealloc
      FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
      LEFT JOIN pg_class ON relnamespace = extnamespace AND relname = 'pg_stat_statements_info'
      WHERE extname = 'pg_stat_statements') t
\gset
\if :has_control
\else
    \echo pgstrata unseen checkpoints 42501
\endif
SELECT format($sample$
    SELECT 'pgstrata sample', json_build_array(
        %s,
        (SELECT json_object_agg(what, sessions) FROM (
            -- Extensions name wait events and lightweight locks of their own.
            SELECT CASE WHEN state = 'active'
                        THEN concat_ws(' ', state, wait_event_type,
                                       CASE WHEN wait_event_type IN ('Activity', 'BufferPin', 'Client', 'IO', 'IPC', 'Lock',
                                                                     'Timeout')
                                                 OR wait_event IN (
                                                     'WALWrite', 'WALInsert', 'WALBufMapping', 'BufferContent',
                                                     'BufferMapping', 'ProcArray', 'XidGen', 'XactBuffer', 'XactSLRU',
                                                     'SubtransBuffer', 'SubtransSLRU', 'MultiXactGen',
                                                     'MultiXactOffsetSLRU', 'MultiXactMemberSLRU', 'LockManager',
                                                     'LockFastPath', 'CheckpointerComm', 'ControlFile', 'SyncRep',
                                                     'RelationMapping',
                                                     -- Of version 12.
                                                     'WALWriteLock', 'wal_insert', 'WALBufMappingLock',
                                                     'buffer_content', 'buffer_mapping', 'ProcArrayLock',
                                                     'XidGenLock', 'CLogControlLock', 'lock_manager')
                                            THEN wait_event END)
                        ELSE coalesce(state, 'unknown') END AS what,
                   count(*) AS sessions
            FROM pg_stat_activity
            WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
            GROUP BY 1) t));
    SELECT pg_sleep(1);
$sample$, CASE WHEN has_function_privilege('pg_catalog.pg_control_checkpoint()', 'EXECUTE')
               THEN $redo$(SELECT pg_wal_lsn_diff(redo_lsn, '0/0') FROM pg_control_checkpoint())$redo$
               ELSE 'NULL' END) AS sample
\gset
-- @
SELECT 'pgstrata counts moment', json_build_object(
    'microseconds', round(extract(epoch FROM clock_timestamp())::numeric * 1000000),
    'wal_position_bytes', pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
                                               ELSE pg_current_wal_insert_lsn() END, '0/0'),
    'transaction_ids', txid_snapshot_xmax(txid_current_snapshot()));
\if :ERROR \echo pgstrata unseen moment :SQLSTATE \endif
\if :has_wal
    SELECT 'pgstrata counts wal', row_to_json(t) FROM pg_stat_wal t;
    \if :ERROR \echo pgstrata unseen wal :SQLSTATE \endif
\else
    \echo pgstrata unseen wal 42P01
\endif
SELECT 'pgstrata counts databases', row_to_json(t) FROM (
    SELECT sum(xact_commit) AS xact_commit, sum(xact_rollback) AS xact_rollback,
           sum(blks_read) AS blks_read, sum(blks_hit) AS blks_hit,
           sum(tup_inserted) AS tup_inserted, sum(tup_updated) AS tup_updated, sum(tup_deleted) AS tup_deleted,
           sum(temp_files) AS temp_files, sum(temp_bytes) AS temp_bytes, sum(deadlocks) AS deadlocks,
           sum(blk_read_time) AS blk_read_time, sum(blk_write_time) AS blk_write_time,
           max(stats_reset) AS stats_reset
    FROM pg_stat_database) t;
\if :ERROR \echo pgstrata unseen databases :SQLSTATE \endif
SELECT 'pgstrata counts bgwriter', row_to_json(t) FROM pg_stat_bgwriter t;
\if :ERROR \echo pgstrata unseen bgwriter :SQLSTATE \endif
\if :has_checkpointer
    SELECT 'pgstrata counts checkpointer', row_to_json(t) FROM pg_stat_checkpointer t;
    \if :ERROR \echo pgstrata unseen checkpointer :SQLSTATE \endif
\endif
\if :has_io
    SELECT 'pgstrata counts io', row_to_json(t) FROM (
        SELECT sum(read_bytes) FILTER (WHERE NOT is_wal) AS read_bytes,
               sum(reads) FILTER (WHERE NOT is_wal) AS reads,
               sum(read_time) FILTER (WHERE NOT is_wal) AS read_time,
               sum(write_bytes) FILTER (WHERE NOT is_wal) AS write_bytes,
               sum(write_bytes) FILTER (WHERE NOT is_wal AND backend_type = 'checkpointer')
                   AS checkpointer_write_bytes,
               sum(write_bytes) FILTER (WHERE NOT is_wal AND backend_type = 'client backend') AS client_write_bytes,
               sum(extend_bytes) FILTER (WHERE NOT is_wal) AS extend_bytes,
               sum(fsyncs) FILTER (WHERE NOT is_wal) AS fsyncs,
               sum(write_bytes) FILTER (WHERE is_wal) AS wal_write_bytes,
               sum(fsyncs) FILTER (WHERE is_wal) AS wal_fsyncs,
               sum(fsync_time) FILTER (WHERE is_wal) AS wal_fsync_time,
               max(stats_reset) AS stats_reset
        FROM (SELECT backend_type, object = 'wal' AS is_wal, reads, read_time, fsyncs, fsync_time, stats_reset,
                     coalesce((as_json->>'read_bytes')::numeric, reads * (as_json->>'op_bytes')::numeric) AS read_bytes,
                     coalesce((as_json->>'write_bytes')::numeric, writes * (as_json->>'op_bytes')::numeric) AS write_bytes,
                     coalesce((as_json->>'extend_bytes')::numeric,
                              extends * (as_json->>'op_bytes')::numeric) AS extend_bytes
              FROM (SELECT s.*, to_jsonb(s) AS as_json FROM pg_stat_io s) s) s) t;
    \if :ERROR \echo pgstrata unseen io :SQLSTATE \endif
\else
    \echo pgstrata unseen io 42P01
\endif
\if :has_statements
    SELECT 'pgstrata counts statements', json_build_object(
        'calls', sum(calls), 'shared_blks_dirtied', sum(shared_blks_dirtied),
        'shared_blks_read', sum(shared_blks_read), 'shared_blks_written', sum(shared_blks_written),
        'stats_reset', :statements_reset, 'dealloc', :statements_dealloc)
    -- With track = all, what functions ran has rows of its own, and is in that of the statement as well.
    FROM :statements s WHERE coalesce((to_jsonb(s) ->> 'toplevel')::boolean, true);
    \if :ERROR \echo pgstrata unseen statements :SQLSTATE \endif
\else
    \echo pgstrata unseen statements absent
\endif
SELECT 'pgstrata state replication', row_to_json(t) FROM (
    SELECT count(*) AS standbys, count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) AS synchronous_standbys,
           max(pg_wal_lsn_diff(sent_lsn, replay_lsn)) AS replay_lag_bytes,
           round(max(extract(epoch FROM replay_lag))::numeric * 1000) AS replay_lag_milliseconds
    FROM pg_stat_replication) t;
\if :ERROR \echo pgstrata unseen replication :SQLSTATE \endif
-- @
:sample
-- @
\echo pgstrata end
