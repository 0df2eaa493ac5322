SELECT category, COUNT(*), SUM(stock) FROM products;
