SELECT category, name, RANK() OVER (ORDER BY price_cents DESC) FROM products;
