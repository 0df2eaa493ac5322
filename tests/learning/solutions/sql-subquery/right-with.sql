WITH middle AS (
  SELECT AVG(price_cents) AS cents FROM products
)
SELECT p.name, p.price_cents
FROM products p
JOIN middle ON p.price_cents > middle.cents;
