SELECT id, name FROM customers WHERE id IN (6, 8);
