WITH counted AS (
  SELECT
    strftime('%Y-%m', o.ordered_on) AS month,
    (SELECT IFNULL(SUM(quantity * unit_cents), 0) FROM order_items i WHERE i.order_id = o.id) AS cents
  FROM orders o
  WHERE o.status != 'cancelled'
),
months AS (
  SELECT month, COUNT(*) AS n, SUM(cents) AS revenue FROM counted GROUP BY month
)
SELECT m.month, m.n, m.revenue, m.revenue - b.revenue
FROM months m
LEFT JOIN months b ON b.month = (SELECT MAX(x.month) FROM months x WHERE x.month < m.month)
ORDER BY m.month;
