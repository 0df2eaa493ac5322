SELECT name, price_cents FROM products WHERE price_cents >= 2900 ORDER BY price_cents DESC LIMIT 3;
