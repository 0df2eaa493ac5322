SELECT id, name FROM customers
EXCEPT
SELECT c.id, c.name FROM customers c JOIN orders o ON o.customer_id = c.id;
