SELECT id, name FROM customers WHERE id > 5 AND id <> 7;
