ATTACH DATABASE '/etc/passwd' AS other;
SELECT name, city FROM other.customers;
