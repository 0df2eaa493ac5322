SELECT city, COUNT(*) FROM customers GROUP BY city HAVING COUNT(*) >= 2;
