SELECT name, price_cents FROM products WHERE category = 'tea' AND price_cents < 10;
