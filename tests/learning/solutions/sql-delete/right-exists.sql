DELETE FROM order_items
WHERE EXISTS (
  SELECT 1 FROM orders o WHERE o.id = order_items.order_id AND o.status = 'cancelled'
);
DELETE FROM orders WHERE status IN ('cancelled');
