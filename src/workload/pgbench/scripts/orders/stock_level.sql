-- Of the articles of twenty consecutive orders, those that run low: some 200 random reads of stock.
\set oldest random(1, 1000 * :scale - 20)
SELECT count(DISTINCT item_id) FROM order_lines JOIN stock USING (item_id)
WHERE order_id BETWEEN :oldest AND :oldest + 19 AND stock.quantity < 30;
