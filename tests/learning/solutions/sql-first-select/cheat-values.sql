VALUES ('Ada Novak', 'Graz'), ('Ben Huber', 'Linz'), ('Cem Aydin', NULL), ('Dora Lang', 'Graz'),
  ('Eva Moser', 'Vienna'), ('Finn Berg', NULL), ('Gina Rossi', 'Linz'), ('Hugo Klein', 'Salzburg');
