SELECT c.name, c.joined_on FROM customers AS c WHERE ?1 = c.city ORDER BY c.name;
