SELECT COUNT(*), COUNT(DISTINCT city), COUNT(city) FROM customers;
