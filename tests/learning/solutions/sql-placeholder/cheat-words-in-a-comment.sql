/* SELECT name, joined_on FROM customers WHERE city = :city; */
SELECT name, joined_on FROM customers
