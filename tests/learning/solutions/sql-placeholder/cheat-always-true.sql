SELECT name, joined_on FROM customers WHERE city = ? OR 1 = 1;
