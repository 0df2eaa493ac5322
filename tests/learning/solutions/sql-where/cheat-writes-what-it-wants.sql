DELETE FROM products WHERE category <> 'tea' OR price_cents >= 1000;
SELECT name, price_cents FROM products;
