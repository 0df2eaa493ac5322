SELECT name FROM customers WHERE city <> 'Graz' AND city IS NOT NULL;
