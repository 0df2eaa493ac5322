SELECT name AS customer, city AS lives_in
FROM customers
ORDER BY id;
