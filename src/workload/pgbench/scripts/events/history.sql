-- Ten seconds that may be as old as what is kept: 1000 events on some 20 pages.
\set age random(10, 60 * :scale)
SELECT last_value - :age::bigint AS first FROM event_batches \gset
SELECT source, count(*), max(value) FROM events
WHERE at >= to_timestamp(:first::bigint) AND at < to_timestamp(:first::bigint + 10) GROUP BY source;
