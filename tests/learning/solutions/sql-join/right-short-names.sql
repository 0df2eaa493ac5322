SELECT o.id, c.name, o.ordered_on
FROM customers AS c
INNER JOIN orders AS o ON o.customer_id = c.id
ORDER BY o.id;
