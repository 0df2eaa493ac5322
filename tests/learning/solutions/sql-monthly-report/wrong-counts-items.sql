WITH months AS (
  SELECT substr(o.ordered_on, 1, 7) AS month, COUNT(*) AS n, COALESCE(SUM(i.quantity * i.unit_cents), 0) AS revenue
  FROM orders o LEFT JOIN order_items i ON i.order_id = o.id
  WHERE o.status <> 'cancelled'
  GROUP BY month
)
SELECT month, n, revenue, revenue - LAG(revenue) OVER (ORDER BY month) FROM months ORDER BY month;
