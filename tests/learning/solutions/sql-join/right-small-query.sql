SELECT id, (SELECT name FROM customers WHERE customers.id = orders.customer_id), ordered_on
FROM orders
WHERE customer_id IS NOT NULL;
