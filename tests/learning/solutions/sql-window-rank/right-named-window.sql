SELECT category, name, rank() OVER dearest
FROM products
WINDOW dearest AS (PARTITION BY category ORDER BY -price_cents)
ORDER BY category, 3;
