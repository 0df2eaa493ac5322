SELECT name, price_cents FROM products WHERE category = 'pots';
