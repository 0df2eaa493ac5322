SELECT id, name, category, price_cents + 50 * (category = 'tea' AND stock > 0), stock FROM products;
