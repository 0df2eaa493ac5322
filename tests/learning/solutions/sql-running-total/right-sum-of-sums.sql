SELECT
  o.ordered_on,
  SUM(i.quantity * i.unit_cents),
  SUM(SUM(i.quantity * i.unit_cents)) OVER (ORDER BY o.ordered_on ROWS UNBOUNDED PRECEDING)
FROM orders o
JOIN order_items i ON i.order_id = o.id
WHERE o.status != 'cancelled'
GROUP BY o.ordered_on
ORDER BY o.ordered_on;
