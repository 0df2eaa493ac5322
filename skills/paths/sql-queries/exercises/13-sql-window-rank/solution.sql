SELECT
  category,
  name,
  RANK() OVER (PARTITION BY category ORDER BY price_cents DESC) AS place
FROM products;
