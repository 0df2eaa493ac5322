DELETE FROM order_items
WHERE (SELECT status FROM orders WHERE orders.id = order_items.order_id) = 'cancelled';
DELETE FROM orders WHERE NOT status <> 'cancelled';
