-- The batch is numbered while events is locked against rotation, so its partition stays. Every client that misses the third
-- partition from here rotates before it appends again: none can run out of partitions.
WITH next AS (
    SELECT nextval('event_batches') AS batch
), appended AS (
    INSERT INTO events
    SELECT to_timestamp(n / 100.0), 1 + n * 37 % 100, n % 7, sqrt(n), repeat(md5(n::text), 3)
    FROM next, generate_series(100 * batch, 100 * batch + 99) AS n
), place AS (
    SELECT batch / (6 * :scale::bigint) AS part FROM next)
SELECT part, to_regclass(format('events_%s', part + 3)) IS NULL AS is_due FROM place \gset
\if :is_due
SELECT rotate_events(:part, 6 * :scale::bigint);
\endif
