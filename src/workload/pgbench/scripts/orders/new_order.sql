-- Ten articles of one store; the popular ones are bought often. Stock is locked in the order of its key: no deadlocks.
\set customer 1 + abs(hash(random_zipfian(1, 300 * :scale, 1.05), 1)) % (300 * :scale)
\set first (:customer - 1) / 300 * 1000
\set i1 :first + random_zipfian(1, 1000, 1.05)
\set i2 :first + random_zipfian(1, 1000, 1.05)
\set i3 :first + random_zipfian(1, 1000, 1.05)
\set i4 :first + random_zipfian(1, 1000, 1.05)
\set i5 :first + random_zipfian(1, 1000, 1.05)
\set i6 :first + random_zipfian(1, 1000, 1.05)
\set i7 :first + random_zipfian(1, 1000, 1.05)
\set i8 :first + random_zipfian(1, 1000, 1.05)
\set i9 :first + random_zipfian(1, 1000, 1.05)
\set i10 :first + random_zipfian(1, 1000, 1.05)
BEGIN;
SELECT name, balance FROM customers WHERE customer_id = :customer;
INSERT INTO orders (customer_id, ordered_at) VALUES (:customer, now()) RETURNING order_id \gset
WITH wanted AS (
    SELECT item_id FROM stock WHERE item_id IN (:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10)
    ORDER BY item_id FOR UPDATE)
UPDATE stock SET sold = sold + 5, quantity = CASE WHEN quantity > 15 THEN quantity - 5 ELSE quantity + 85 END
FROM wanted WHERE stock.item_id = wanted.item_id;
INSERT INTO order_lines
SELECT :order_id, line, item_id, 5, 5 * price, false, left(md5((10 * :order_id::bigint + line)::text), 24)
FROM unnest(ARRAY[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10]::bigint[]) WITH ORDINALITY AS wanted (item_id, line)
JOIN stock USING (item_id);
END;
