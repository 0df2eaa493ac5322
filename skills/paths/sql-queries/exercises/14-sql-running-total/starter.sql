-- Step 1: one row for each day. Step 2: the sum up to that day.
WITH days AS (
  SELECT orders.ordered_on, COUNT(*) AS cents
  FROM orders
  GROUP BY orders.ordered_on
)
SELECT ordered_on, cents, cents AS so_far
FROM days
ORDER BY ordered_on;
