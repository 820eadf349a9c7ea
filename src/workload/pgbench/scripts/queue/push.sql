\set seed random(1, 1000000000)
INSERT INTO jobs (state, queued_at, payload) VALUES ('ready', now(), repeat(md5(:seed::bigint::text), 5));
