SELECT
  c.category,
  (SELECT COUNT(*) FROM products p WHERE p.category = c.category),
  (SELECT SUM(p.stock) FROM products p WHERE p.category = c.category)
FROM (SELECT DISTINCT category FROM products) AS c;
