SELECT name FROM customers WHERE id NOT IN (1, 4);
