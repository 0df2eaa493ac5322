-- Customers without any order.
SELECT customers.id, customers.name
FROM customers
JOIN orders ON orders.customer_id = customers.id;
