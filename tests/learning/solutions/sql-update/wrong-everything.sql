UPDATE products SET price_cents = price_cents + 50;
