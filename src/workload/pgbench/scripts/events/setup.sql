-- A log with a clock of its own: batch B is its second B, with 100 events. Ten whole partitions are kept, each of 6 seconds
-- for one unit of scale; one is written, and three more are ready.
CREATE TABLE events (
    at timestamptz NOT NULL, source int NOT NULL, kind int NOT NULL, value double precision NOT NULL,
    payload text NOT NULL) PARTITION BY RANGE (at);
CREATE INDEX events_by_time ON events (at);
CREATE SEQUENCE event_batches;
-- Makes the partitions from this one to the third after it, and drops all but the ten before it, as far as another client
-- has not done that. The lock comes first: no append is under way, and the catalog is seen as it is.
CREATE FUNCTION rotate_events(current bigint, seconds bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE ONLY events IN ACCESS EXCLUSIVE MODE;
    FOR part IN current .. current + 3 LOOP
        IF to_regclass(format('events_%s', part)) IS NULL THEN
            EXECUTE format('CREATE TABLE events_%s PARTITION OF events FOR VALUES FROM (%L) TO (%L)', part,
                to_timestamp(part * seconds), to_timestamp((part + 1) * seconds));
        END IF;
    END LOOP;
    FOR part IN current - 21 .. current - 11 LOOP
        IF to_regclass(format('events_%s', part)) IS NOT NULL THEN
            EXECUTE format('DROP TABLE events_%s', part);
        END IF;
    END LOOP;
END $$;
BEGIN;
SELECT rotate_events(part, 6 * :scale::bigint) FROM generate_series(0, 9, 3) AS part;
INSERT INTO events
SELECT to_timestamp(n / 100.0), 1 + n * 37 % 100, n % 7, sqrt(n), repeat(md5(n::text), 3)
FROM generate_series(0, 6000 * :scale::bigint - 1) AS n;
SELECT setval('event_batches', 60 * :scale::bigint - 1);
END;
VACUUM ANALYZE events;
