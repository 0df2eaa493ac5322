SELECT name FROM customers WHERE city IN ('Linz', 'Vienna', 'Salzburg') OR city IS NULL;
