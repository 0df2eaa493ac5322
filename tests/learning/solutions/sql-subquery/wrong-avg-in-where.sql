SELECT name, price_cents FROM products WHERE price_cents > AVG(price_cents);
