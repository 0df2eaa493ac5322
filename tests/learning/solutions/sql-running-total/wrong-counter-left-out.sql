WITH days AS (
  SELECT o.ordered_on, SUM(i.quantity * i.unit_cents) AS cents
  FROM orders o
  JOIN customers c ON c.id = o.customer_id
  JOIN order_items i ON i.order_id = o.id
  WHERE o.status <> 'cancelled'
  GROUP BY o.ordered_on
)
SELECT ordered_on, cents, SUM(cents) OVER (ORDER BY ordered_on) FROM days ORDER BY ordered_on;
