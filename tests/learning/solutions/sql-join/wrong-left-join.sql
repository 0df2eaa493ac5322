SELECT orders.id, customers.name, orders.ordered_on
FROM orders LEFT JOIN customers ON customers.id = orders.customer_id;
