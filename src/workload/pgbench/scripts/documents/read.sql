\set document 1 + abs(hash(random_zipfian(1, 25 * :scale, 1.05), 1)) % (25 * :scale)
SELECT title, body FROM documents WHERE document_id = :document;
