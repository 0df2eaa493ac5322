-- For each customer: id, name, cents spent.
SELECT customers.id, customers.name, COUNT(*)
FROM customers
JOIN orders ON orders.customer_id = customers.id
GROUP BY customers.id;
