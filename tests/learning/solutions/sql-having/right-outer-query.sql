SELECT city, people
FROM (SELECT city, COUNT(*) AS people FROM customers GROUP BY city)
WHERE people >= 2 AND city IS NOT NULL;
