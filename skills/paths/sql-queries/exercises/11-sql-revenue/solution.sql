SELECT
  customers.id,
  customers.name,
  SUM(order_items.quantity * order_items.unit_cents) AS spent_cents
FROM customers
JOIN orders ON orders.customer_id = customers.id
JOIN order_items ON order_items.order_id = orders.id
WHERE orders.status <> 'cancelled'
GROUP BY customers.id, customers.name;
