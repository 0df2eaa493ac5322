SELECT name, city FROM customers;
