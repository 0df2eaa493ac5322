SELECT category, COUNT(*) AS products, SUM(stock) AS pieces
FROM products
GROUP BY category;
