SELECT category, name, ROW_NUMBER() OVER (PARTITION BY category ORDER BY price_cents DESC) FROM products;
