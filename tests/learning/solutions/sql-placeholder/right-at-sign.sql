SELECT name AS customer, joined_on AS since
FROM customers
WHERE city = @wanted
ORDER BY name, joined_on;
