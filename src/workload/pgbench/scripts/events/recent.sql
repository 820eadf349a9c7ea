-- The newest ten seconds of the log's clock.
SELECT last_value FROM event_batches \gset
SELECT kind, count(*), avg(value) FROM events WHERE at >= to_timestamp(:last_value::bigint - 10) GROUP BY kind;
