INSERT INTO customers (id, name, city, joined_on) VALUES (9, 'Mia Hofer', NULL, '2026-04-01');
