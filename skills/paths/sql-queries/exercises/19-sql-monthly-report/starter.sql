-- A beginning. It counts items instead of orders, and there is more to do.
SELECT substr(orders.ordered_on, 1, 7) AS month, COUNT(*) AS orders
FROM orders
JOIN order_items ON order_items.order_id = orders.id
GROUP BY month
ORDER BY month;
