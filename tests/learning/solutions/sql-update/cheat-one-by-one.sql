UPDATE products SET price_cents = 740 WHERE id = 1;
UPDATE products SET price_cents = 640 WHERE id = 2;
UPDATE products SET price_cents = 1300 WHERE id = 3;
