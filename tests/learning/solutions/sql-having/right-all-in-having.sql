SELECT city, COUNT(city) FROM customers GROUP BY city HAVING COUNT(city) > 1;
