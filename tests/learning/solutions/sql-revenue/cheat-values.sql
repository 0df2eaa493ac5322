VALUES (1, 'Ada Novak', 6960), (2, 'Ben Huber', 8250), (3, 'Cem Aydin', 2070), (5, 'Eva Moser', 4150);
