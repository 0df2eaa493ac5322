WITH order_totals AS (
  SELECT
    orders.id,
    substr(orders.ordered_on, 1, 7) AS month,
    COALESCE(SUM(order_items.quantity * order_items.unit_cents), 0) AS cents
  FROM orders
  LEFT JOIN order_items ON order_items.order_id = orders.id
  WHERE orders.status <> 'cancelled'
  GROUP BY orders.id
),
months AS (
  SELECT month, COUNT(*) AS orders, SUM(cents) AS revenue
  FROM order_totals
  GROUP BY month
)
SELECT
  month,
  orders,
  revenue,
  revenue - LAG(revenue) OVER (ORDER BY month) AS change
FROM months
ORDER BY month;
