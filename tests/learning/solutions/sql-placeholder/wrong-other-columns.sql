SELECT * FROM customers WHERE city = ?;
