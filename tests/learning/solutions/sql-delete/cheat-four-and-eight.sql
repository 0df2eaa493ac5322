DELETE FROM order_items WHERE order_id IN (4, 8);
DELETE FROM orders WHERE id IN (4, 8);
