-- Cities with at least two customers.
SELECT city, COUNT(*)
FROM customers
GROUP BY city;
