SELECT customers.id, customers.name, orders.ordered_on
FROM orders JOIN customers ON customers.id = orders.customer_id;
