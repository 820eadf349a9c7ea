-- The body stays where it is.
\set document 1 + abs(hash(random_zipfian(1, 25 * :scale, 1.05), 1)) % (25 * :scale)
\set seed random(1, 1000000000)
UPDATE documents SET changed_at = now(), title = md5(:seed::bigint::text) WHERE document_id = :document;
