SELECT city, COUNT(*) FROM customers WHERE COUNT(*) >= 2 GROUP BY city;
