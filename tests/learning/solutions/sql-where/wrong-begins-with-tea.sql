SELECT name, price_cents FROM products WHERE category LIKE 'tea%' AND price_cents < 1000;
