SELECT name FROM customers WHERE COALESCE(city, 'nowhere') != 'Graz';
