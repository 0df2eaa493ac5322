SELECT name FROM customers WHERE city IS NOT 'Graz';
