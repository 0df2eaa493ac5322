SELECT orders.id, customers.name, orders.ordered_on FROM orders, customers;
