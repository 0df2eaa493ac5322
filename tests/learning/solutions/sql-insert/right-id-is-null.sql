INSERT INTO customers VALUES (NULL, 'Mia Hofer', NULL, '2026-04-01');
