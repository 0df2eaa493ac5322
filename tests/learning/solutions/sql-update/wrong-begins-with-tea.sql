UPDATE products SET price_cents = price_cents + 50 WHERE category LIKE 'tea%' AND stock > 0;
