SELECT DISTINCT name, city FROM customers;
