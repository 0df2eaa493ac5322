SELECT id, name, city, joined_on FROM customers
UNION ALL SELECT 9, 'Mia Hofer', NULL, '2026-04-01';
