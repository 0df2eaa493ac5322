SELECT
  substr(o.ordered_on, 1, 7) AS month,
  COUNT(DISTINCT o.id),
  COALESCE(SUM(i.quantity * i.unit_cents), 0) AS revenue,
  COALESCE(SUM(i.quantity * i.unit_cents), 0)
    - LAG(COALESCE(SUM(i.quantity * i.unit_cents), 0)) OVER (ORDER BY substr(o.ordered_on, 1, 7))
FROM orders o
LEFT JOIN order_items i ON i.order_id = o.id
WHERE o.status IN ('paid', 'sent')
GROUP BY month
ORDER BY month;
