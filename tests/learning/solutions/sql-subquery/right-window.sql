SELECT name, price_cents
FROM (SELECT name, price_cents, AVG(price_cents) OVER () AS middle FROM products)
WHERE price_cents > middle;
