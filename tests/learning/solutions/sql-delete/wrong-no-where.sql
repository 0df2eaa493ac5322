DELETE FROM order_items;
DELETE FROM orders WHERE status = 'cancelled';
