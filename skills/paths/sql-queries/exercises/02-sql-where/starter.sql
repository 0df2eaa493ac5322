-- Tea for less than ten euros.
SELECT name, price_cents FROM products;
