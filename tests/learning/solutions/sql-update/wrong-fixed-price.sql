UPDATE products SET price_cents = 50 WHERE category = 'tea' AND stock > 0;
