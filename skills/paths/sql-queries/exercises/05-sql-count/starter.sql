-- All customers, known cities, different cities.
SELECT COUNT(*), COUNT(*), COUNT(*) FROM customers;
