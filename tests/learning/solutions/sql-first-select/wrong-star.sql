SELECT * FROM customers;
