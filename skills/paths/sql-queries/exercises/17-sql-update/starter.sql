-- Tea in stock costs 50 cents more.
UPDATE products SET price_cents = 50 WHERE category = 'tea';
