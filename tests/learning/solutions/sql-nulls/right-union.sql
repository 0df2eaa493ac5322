SELECT name FROM customers WHERE city IS NULL
UNION ALL
SELECT name FROM customers WHERE city <> 'Graz';
