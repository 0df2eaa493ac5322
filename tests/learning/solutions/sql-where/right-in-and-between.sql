SELECT name, price_cents FROM products
WHERE category IN ('tea') AND price_cents BETWEEN 0 AND 999;
