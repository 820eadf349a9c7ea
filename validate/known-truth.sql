-- Where the server's setting known.twice is 1, one transaction in ten is done twice and counted once. The second one is
-- of other rows, since the same ones would cost less; the setting is read on the way, since a statement of its own
-- would count for both.
\set aid random(1, 100000 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
\set one_in_ten random(1, 10)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid
    RETURNING coalesce(current_setting('known.twice', true), '0')::int AS twice \gset
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, 1, :aid, :delta, CURRENT_TIMESTAMP);
END;
\if :twice = 1 and :one_in_ten = 1
\set aid random(1, 100000 * :scale)
\set tid random(1, 10 * :scale)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid
    RETURNING 0 AS again \gset
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, 1, :aid, :delta, CURRENT_TIMESTAMP);
END;
\endif
