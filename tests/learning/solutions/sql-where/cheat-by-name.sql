SELECT name, price_cents FROM products WHERE name IN ('Green Tea', 'Black Tea', 'Mint Tea');
