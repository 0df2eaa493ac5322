SELECT c."name", c."joined_on" FROM "customers" AS c
WHERE (c.city = $1)
ORDER BY c.joined_on
LIMIT 100;
