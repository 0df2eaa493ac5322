INSERT INTO customers (id, name, joined_on)
VALUES ((SELECT COALESCE(MAX(id), 0) + 1 FROM customers), 'Mia Hofer', '2026-04-01');
