INSERT INTO customers (name, joined_on) VALUES ('Mia Hofer', '2026-04-01'), ('Mia Hofer', '2026-04-01');
