WITH days AS (
  SELECT o.ordered_on AS day, SUM(i.quantity * i.unit_cents) AS cents
  FROM orders o JOIN order_items i ON i.order_id = o.id
  WHERE o.status IN ('sent', 'paid')
  GROUP BY day
)
SELECT d.day, d.cents, (SELECT SUM(e.cents) FROM days e WHERE e.day <= d.day)
FROM days d
ORDER BY d.day;
