SELECT city, name FROM customers;
