SELECT COUNT(*), COUNT(NULLIF(city, '')), COUNT(DISTINCT NULLIF(city, '')) FROM customers;
