UPDATE orders SET status = 'sent' WHERE status = 'cancelled';
