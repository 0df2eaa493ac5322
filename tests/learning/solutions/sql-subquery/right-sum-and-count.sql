SELECT name, price_cents FROM products
WHERE price_cents * (SELECT COUNT(*) FROM products) > (SELECT SUM(price_cents) FROM products);
