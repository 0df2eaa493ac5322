SELECT name, price_cents FROM products ORDER BY -price_cents ASC, name ASC LIMIT 3 OFFSET 0;
