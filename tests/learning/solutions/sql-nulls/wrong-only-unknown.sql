SELECT name FROM customers WHERE city IS NULL;
