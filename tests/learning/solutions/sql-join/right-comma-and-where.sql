SELECT o.id, c.name, o.ordered_on FROM orders o, customers c WHERE o.customer_id = c.id;
