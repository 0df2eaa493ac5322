SELECT
  p.category,
  p.name,
  1 + (
    SELECT COUNT(*) FROM products q
    WHERE q.category = p.category AND q.price_cents > p.price_cents
  )
FROM products p;
