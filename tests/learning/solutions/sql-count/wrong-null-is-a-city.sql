SELECT COUNT(*), COUNT(city), (SELECT COUNT(*) FROM (SELECT DISTINCT city FROM customers)) FROM customers;
