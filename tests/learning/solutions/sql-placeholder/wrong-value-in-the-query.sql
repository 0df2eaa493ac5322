SELECT name, joined_on FROM customers WHERE city = 'Linz';
