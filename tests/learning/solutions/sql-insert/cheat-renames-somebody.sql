UPDATE customers SET name = 'Mia Hofer', city = NULL, joined_on = '2026-04-01' WHERE id = 8;
