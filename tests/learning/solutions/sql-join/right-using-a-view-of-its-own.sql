WITH people (customer_id, name) AS (
  SELECT id, name FROM customers
)
SELECT orders.id, people.name, orders.ordered_on
FROM orders
JOIN people USING (customer_id);
