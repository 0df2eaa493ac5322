-- The three dearest products, the dearest first.
SELECT name, price_cents FROM products LIMIT 3;
