-- Products that cost more than the average.
SELECT name, price_cents
FROM products
WHERE price_cents > AVG(price_cents);
