SELECT p.name, p.price_cents
FROM products p
WHERE NOT (p.category <> 'tea' OR p.price_cents >= 1000)
