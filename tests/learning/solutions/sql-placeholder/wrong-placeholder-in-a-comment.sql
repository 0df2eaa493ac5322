SELECT name, joined_on FROM customers WHERE city = "Graz" -- city = ?
