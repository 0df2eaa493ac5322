SELECT name, joined_on
FROM main.customers
WHERE city = :city;
