\set customer 1 + abs(hash(random_zipfian(1, 300 * :scale, 1.05), 1)) % (300 * :scale)
BEGIN;
SELECT name, balance FROM customers WHERE customer_id = :customer;
SELECT orders.order_id, ordered_at, delivered_at, line, item_id, quantity, amount
FROM (SELECT * FROM orders WHERE customer_id = :customer ORDER BY order_id DESC LIMIT 1) AS orders
JOIN order_lines USING (order_id);
END;
