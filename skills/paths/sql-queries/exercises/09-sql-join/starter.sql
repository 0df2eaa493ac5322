-- The order's number, the customer's name, the day.
SELECT orders.id, customers.name, orders.ordered_on
FROM orders
JOIN customers ON customers.id = orders.id;
