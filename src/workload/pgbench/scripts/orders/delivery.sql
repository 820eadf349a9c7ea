-- The eleven oldest orders that no other client delivers at this moment.
WITH due AS (
    SELECT order_id FROM orders WHERE delivered_at IS NULL ORDER BY order_id LIMIT 11 FOR UPDATE SKIP LOCKED
), delivered AS (
    UPDATE orders SET delivered_at = now() FROM due WHERE orders.order_id = due.order_id RETURNING orders.order_id)
UPDATE order_lines SET is_delivered = true FROM delivered WHERE order_lines.order_id = delivered.order_id;
