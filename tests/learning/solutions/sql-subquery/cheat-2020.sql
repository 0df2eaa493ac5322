SELECT name, price_cents FROM products WHERE price_cents > 2020;
