-- Pages that transactions of the load touch, 32 rows in each of 8 kB, one for each client.
BEGIN;
CREATE TABLE profile_pages (id bigint, n int NOT NULL, filler text NOT NULL)
    WITH (fillfactor = 90, autovacuum_enabled = off);
INSERT INTO profile_pages
SELECT i, 0, left((SELECT string_agg(md5((6::bigint * i + part)::text), '') FROM generate_series(0, 5) part), 184)
FROM generate_series(0, 32 * @PAGES@::bigint - 1) i;
ALTER TABLE profile_pages ADD PRIMARY KEY (id);
-- Rows that transactions append.
CREATE TABLE profile_log (filler text NOT NULL) WITH (autovacuum_enabled = off);
COMMIT;
-- Once read, rows know that they are committed, and reading them later writes nothing.
SELECT count(filler) FROM profile_pages;
-- A page has an old version of a row from the start, as it has later: each touch removes one and leaves one.
UPDATE profile_pages SET n = 1 WHERE id % 32 = 31;
ANALYZE profile_pages;
-- @
-- Pages, four times as many as the load's shared_buffers have, with eight rows each of 8 kB.
BEGIN;
CREATE TABLE profile_reads (filler text NOT NULL) WITH (autovacuum_enabled = off);
INSERT INTO profile_reads
SELECT repeat(md5(i::text), 30) FROM generate_series(1, 8 * @READS@::bigint + 8) i;
COMMIT;
SELECT count(filler) FROM profile_reads;
ANALYZE profile_reads;
-- @
\set touches @TOUCHES@
\set lookups @LOOKUPS@
\set slot :client_id % 32
WITH touched AS (
    UPDATE profile_pages SET n = n + 1
    WHERE id = ANY (ARRAY(
        SELECT 32 * floor(random() * @PAGES@)::bigint + :slot FROM generate_series(1, :touches)))),
added AS (INSERT INTO profile_log SELECT repeat('x', @LENGTH@) FROM generate_series(1, @ADDED@))
SELECT CASE WHEN @MESSAGE@ > 0 OR @ADDED@ = 0 AND :touches = 0 THEN pg_logical_emit_message(true, '', repeat('x', @MESSAGE@)) END, @LOOK@;
-- @
\set lookups @LOOKUPS@
SELECT @LOOK@;
-- @
(SELECT count(filler) FROM profile_reads
    WHERE ctid = ANY (ARRAY(
        SELECT format('(%s,1)', floor(random() * @READS@))::tid
        FROM generate_series(1, :lookups))))
