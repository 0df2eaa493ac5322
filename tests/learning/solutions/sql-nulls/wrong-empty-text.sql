SELECT name FROM customers WHERE city <> 'Graz' OR city = '';
