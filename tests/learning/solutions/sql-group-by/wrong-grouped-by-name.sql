SELECT category, COUNT(*), SUM(stock) FROM products GROUP BY name;
