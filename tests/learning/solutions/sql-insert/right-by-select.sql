INSERT INTO customers (name, joined_on)
SELECT 'Mia Hofer', '2026-04-01';
