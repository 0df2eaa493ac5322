SELECT name, city FROM customers WHERE city IS NOT NULL;
