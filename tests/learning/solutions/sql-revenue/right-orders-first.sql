WITH order_totals AS (
  SELECT o.customer_id, SUM(i.quantity * i.unit_cents) AS cents
  FROM orders o
  JOIN order_items i ON i.order_id = o.id
  WHERE o.status IN ('paid', 'sent')
  GROUP BY o.id
)
SELECT c.id, c.name, SUM(t.cents)
FROM order_totals t
JOIN customers c ON c.id = t.customer_id
GROUP BY c.id;
