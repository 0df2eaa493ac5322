INSERT INTO customers (name, city, joined_on) VALUES ('Mia Hofer', '', '2026-04-01');
