SELECT category, name, RANK() OVER (PARTITION BY category ORDER BY price_cents) FROM products;
