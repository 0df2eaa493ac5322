SELECT orders.id, customers.name, orders.ordered_on FROM orders JOIN customers ON orders.id = customers.id;
