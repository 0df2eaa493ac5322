SELECT name, price_cents FROM products GROUP BY id HAVING price_cents > AVG(price_cents);
