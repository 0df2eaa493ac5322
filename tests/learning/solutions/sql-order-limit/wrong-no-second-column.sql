SELECT name, price_cents FROM products ORDER BY price_cents DESC LIMIT 3;
