DELETE FROM customers;
INSERT INTO customers VALUES
  (1, 'Ada Novak', 'Graz', '2025-01-12'), (2, 'Ben Huber', 'Linz', '2025-02-03'),
  (3, 'Cem Aydin', NULL, '2025-02-20'), (4, 'Dora Lang', 'Graz', '2025-03-15'),
  (5, 'Eva Moser', 'Vienna', '2025-04-01'), (6, 'Finn Berg', NULL, '2025-05-22'),
  (7, 'Gina Rossi', 'Linz', '2025-06-30'), (8, 'Hugo Klein', 'Salzburg', '2025-07-04'),
  (9, 'Mia Hofer', NULL, '2026-04-01');
