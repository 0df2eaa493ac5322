SELECT id, name FROM customers
WHERE name NOT IN (SELECT c.name FROM customers c JOIN orders o ON o.customer_id = c.id)
  AND city IS NOT NULL;
