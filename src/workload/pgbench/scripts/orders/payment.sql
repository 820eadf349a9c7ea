\set customer 1 + abs(hash(random_zipfian(1, 300 * :scale, 1.05), 1)) % (300 * :scale)
\set amount random(100, 50000)
BEGIN;
UPDATE customers SET balance = balance - :amount, payments = payments + 1 WHERE customer_id = :customer;
INSERT INTO payments (customer_id, amount, paid_at) VALUES (:customer, :amount, now());
END;
