INSERT INTO customers (name, city, joined_on) VALUES ('2026-04-01', NULL, 'Mia Hofer');
