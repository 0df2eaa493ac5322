SELECT category, COUNT(*), COUNT(stock) FROM products GROUP BY category;
