-- Cancelled orders and their items.
DELETE FROM orders WHERE status = 'cancelled';
