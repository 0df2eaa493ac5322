SELECT name, price_cents
FROM (
  SELECT name, price_cents, ROW_NUMBER() OVER (ORDER BY price_cents DESC, name) AS place
  FROM products
)
WHERE place <= 3
ORDER BY place;
