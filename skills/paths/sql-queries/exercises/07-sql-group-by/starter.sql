-- For each category: its name, the number of products, the pieces in stock.
SELECT category, COUNT(*), SUM(stock) FROM products;
