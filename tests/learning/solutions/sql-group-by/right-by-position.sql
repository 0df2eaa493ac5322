SELECT category, COUNT(id), TOTAL(stock) FROM products GROUP BY 1 ORDER BY 1;
