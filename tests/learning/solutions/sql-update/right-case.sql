UPDATE products
SET price_cents = CASE WHEN category = 'tea' AND stock >= 1 THEN price_cents + 50 ELSE price_cents END;
