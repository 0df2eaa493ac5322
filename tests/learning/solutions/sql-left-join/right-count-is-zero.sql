SELECT c.id, c.name
FROM customers c LEFT JOIN orders o ON o.customer_id = c.id
GROUP BY c.id
HAVING COUNT(o.id) = 0;
