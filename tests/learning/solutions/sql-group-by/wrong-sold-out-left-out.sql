SELECT category, COUNT(*), SUM(stock) FROM products WHERE stock > 0 GROUP BY category;
