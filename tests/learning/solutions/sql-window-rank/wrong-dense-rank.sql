SELECT category, name, DENSE_RANK() OVER (PARTITION BY category ORDER BY price_cents DESC) FROM products;
