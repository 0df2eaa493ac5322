-- The place of each product within its category, the dearest first.
SELECT category, name, RANK() OVER (ORDER BY price_cents) AS place
FROM products;
