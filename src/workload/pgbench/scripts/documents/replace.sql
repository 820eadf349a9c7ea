\set document 1 + abs(hash(random_zipfian(1, 25 * :scale, 1.05), 1)) % (25 * :scale)
\set kilobytes random_exponential(2, 200, 5)
\set seed random(1, 1000000000)
UPDATE documents SET revision = revision + 1, changed_at = now(), body = body(:kilobytes, :seed)
WHERE document_id = :document;
