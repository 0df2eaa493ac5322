WITH days AS (
  SELECT orders.ordered_on, SUM(order_items.quantity * order_items.unit_cents) AS cents
  FROM orders
  JOIN order_items ON order_items.order_id = orders.id
  WHERE orders.status <> 'cancelled'
  GROUP BY orders.ordered_on
)
SELECT ordered_on, cents, SUM(cents) OVER (ORDER BY ordered_on) AS so_far
FROM days
ORDER BY ordered_on;
