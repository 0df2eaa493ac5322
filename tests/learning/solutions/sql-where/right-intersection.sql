SELECT name, price_cents FROM products WHERE id IN (
  SELECT id FROM products WHERE category = 'tea'
  INTERSECT
  SELECT id FROM products WHERE price_cents < 1000
);
