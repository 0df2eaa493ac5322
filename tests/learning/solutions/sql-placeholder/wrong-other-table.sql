SELECT name, joined_on
FROM main.orders
WHERE city = :city;
