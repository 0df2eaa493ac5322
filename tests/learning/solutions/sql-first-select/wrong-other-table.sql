SELECT name, category FROM products;
