UPDATE products SET price_cents = price_cents + 0.5 WHERE category = 'tea' AND stock > 0;
