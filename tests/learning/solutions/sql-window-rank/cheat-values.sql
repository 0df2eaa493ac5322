VALUES ('tea', 'White Tea', 1), ('tea', 'Green Tea', 2), ('tea', 'Black Tea', 3), ('tea', 'Mint Tea', 4),
  ('pots', 'Iron Pot', 1), ('pots', 'Clay Pot', 2), ('pots', 'Glass Pot', 3),
  ('cups', 'Large Cup', 1), ('cups', 'Small Cup', 2);
