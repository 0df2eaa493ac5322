SELECT name, price_cents FROM products p
WHERE price_cents > (SELECT AVG(price_cents) FROM products q WHERE q.category = p.category);
