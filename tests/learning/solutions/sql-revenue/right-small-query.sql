SELECT id, name, spent
FROM (
  SELECT c.id, c.name, (
    SELECT SUM(i.quantity * i.unit_cents)
    FROM orders o, order_items i
    WHERE o.customer_id = c.id AND i.order_id = o.id AND NOT o.status = 'cancelled'
  ) AS spent
  FROM customers c
)
WHERE spent IS NOT NULL;
