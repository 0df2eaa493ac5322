UPDATE products SET price_cents = 50 + price_cents
WHERE id IN (SELECT id FROM products WHERE category = 'tea' AND stock <> 0);
