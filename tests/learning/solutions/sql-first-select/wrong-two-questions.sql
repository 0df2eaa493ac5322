SELECT name, city FROM customers;
SELECT name, price_cents FROM products;
