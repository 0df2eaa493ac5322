-- Show the name and the city of every customer.
SELECT id FROM customers;
