SELECT name, price_cents FROM products WHERE price_cents >= (SELECT AVG(price_cents) FROM products);
