-- One unit of scale is 25 documents of 2 to 200 kB, most of them small. EXTERNAL: PostgreSQL compresses nothing, so sizes hold.
CREATE FUNCTION body(kilobytes int, seed bigint) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(encode(sha512(convert_to(seed || ':' || part, 'UTF8')), 'hex'), '')
    FROM generate_series(1, 8 * kilobytes) AS part $$;
BEGIN;
CREATE TABLE documents (
    document_id bigint, revision int NOT NULL, changed_at timestamptz NOT NULL, title text NOT NULL, body text NOT NULL);
ALTER TABLE documents ALTER body SET STORAGE EXTERNAL;
INSERT INTO documents
SELECT d, 1, now(), md5(d::text), body((2 - 198 * ln(1 - d * 0.618034 % 1 * (1 - exp(-5))) / 5)::int, d)
FROM generate_series(1, 25 * :scale::bigint) AS d;
END;
ALTER TABLE documents ADD PRIMARY KEY (document_id);
VACUUM ANALYZE documents;
