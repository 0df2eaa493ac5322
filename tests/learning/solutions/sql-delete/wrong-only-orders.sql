DELETE FROM orders WHERE status = 'cancelled';
