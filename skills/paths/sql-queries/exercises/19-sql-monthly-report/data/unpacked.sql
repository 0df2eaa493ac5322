PRAGMA foreign_keys = ON;

CREATE TABLE customers (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  city TEXT,
  joined_on TEXT NOT NULL
);
CREATE TABLE products (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price_cents INTEGER NOT NULL,
  stock INTEGER NOT NULL
);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER REFERENCES customers (id),
  ordered_on TEXT NOT NULL,
  status TEXT NOT NULL
);
CREATE TABLE order_items (
  order_id INTEGER NOT NULL REFERENCES orders (id),
  product_id INTEGER NOT NULL REFERENCES products (id),
  quantity INTEGER NOT NULL,
  unit_cents INTEGER NOT NULL,
  PRIMARY KEY (order_id, product_id)
);

INSERT INTO customers (id, name, city, joined_on) VALUES
  (1, 'Ada Novak', 'Graz', '2025-01-12'),
  (2, 'Ben Huber', 'Linz', '2025-02-03'),
  (3, 'Cem Aydin', NULL, '2025-02-20'),
  (4, 'Dora Lang', 'Graz', '2025-03-15'),
  (5, 'Eva Moser', 'Vienna', '2025-04-01'),
  (6, 'Finn Berg', NULL, '2025-05-22'),
  (7, 'Gina Rossi', 'Linz', '2025-06-30'),
  (8, 'Hugo Klein', 'Salzburg', '2025-07-04');

INSERT INTO products (id, name, category, price_cents, stock) VALUES
  (1, 'Green Tea', 'tea', 690, 40),
  (2, 'Black Tea', 'tea', 590, 55),
  (3, 'White Tea', 'tea', 1250, 8),
  (4, 'Mint Tea', 'tea', 450, 0),
  (5, 'Clay Pot', 'pots', 3900, 5),
  (6, 'Glass Pot', 'pots', 2900, 7),
  (7, 'Iron Pot', 'pots', 6500, 2),
  (8, 'Small Cup', 'cups', 800, 30),
  (9, 'Large Cup', 'cups', 1100, 24);

INSERT INTO orders (id, customer_id, ordered_on, status) VALUES
  (1, 1, '2026-01-05', 'sent'),
  (2, 2, '2026-01-05', 'sent'),
  (3, 1, '2026-01-19', 'sent'),
  (4, 4, '2026-02-02', 'cancelled'),
  (5, NULL, '2026-02-02', 'sent'),
  (6, 5, '2026-02-14', 'sent'),
  (7, 1, '2026-02-27', 'paid'),
  (8, 7, '2026-03-03', 'cancelled'),
  (9, 2, '2026-03-03', 'paid'),
  (10, 3, '2026-03-11', 'paid');

INSERT INTO order_items (order_id, product_id, quantity, unit_cents) VALUES
  (1, 1, 2, 650),
  (1, 8, 4, 800),
  (2, 5, 1, 3900),
  (3, 2, 3, 590),
  (4, 7, 1, 6500),
  (5, 9, 2, 1100),
  (6, 3, 1, 1250),
  (6, 6, 1, 2900),
  (7, 1, 1, 690),
  (8, 5, 2, 3900),
  (9, 2, 5, 550),
  (9, 8, 2, 800),
  (10, 1, 3, 690);

INSERT INTO orders (id, customer_id, ordered_on, status) VALUES
  (11, 6, '2026-03-30', 'paid'),
  (12, 6, '2026-05-01', 'paid'),
  (13, 8, '2026-06-01', 'cancelled');
