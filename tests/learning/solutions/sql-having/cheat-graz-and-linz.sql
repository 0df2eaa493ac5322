SELECT city, COUNT(*) FROM customers WHERE city IN ('Graz', 'Linz') GROUP BY city;
