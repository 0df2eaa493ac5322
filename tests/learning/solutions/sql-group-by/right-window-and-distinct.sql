SELECT DISTINCT
  category,
  COUNT(*) OVER (PARTITION BY category),
  SUM(stock) OVER (PARTITION BY category)
FROM products;
