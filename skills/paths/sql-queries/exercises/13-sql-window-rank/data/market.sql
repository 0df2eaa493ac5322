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
  (11, 'Ada Novak', 'Graz', '2024-03-01'),
  (12, 'Ada Novak', 'Graz', '2024-08-09'),
  (13, 'Šime Kovač', 'Zadar', '2024-09-10'),
  (14, 'Zoë Müller', NULL, '2024-10-11'),
  (15, 'Ivo Horvat', NULL, '2024-10-11'),
  (16, 'Lea Gruber', 'Linz', '2025-01-01'),
  (17, 'Max O''Neil', 'Zadar', '2025-01-02'),
  (18, 'Nia Okoye', 'Zadar', '2025-06-06'),
  (19, 'Otto Weiss', '', '2025-07-07'),
  (20, 'Pia Stern', NULL, '2025-08-08');

INSERT INTO products (id, name, category, price_cents, stock) VALUES
  (21, 'Oolong', 'tea', 1000, 12),
  (22, 'Rooibos', 'tea', 999, 3),
  (23, 'Assam', 'tea', 0, 1),
  (24, 'Tea Towel', 'teaware', 500, 9),
  (25, 'Copper Pot', 'pots', 7000, 1),
  (26, 'Brass Pot', 'pots', 7000, 0),
  (27, 'Tin Pot', 'pots', 1000, 4),
  (28, 'Blue Cup', 'cups', 7000, 2),
  (29, 'Red Cup', 'cups', 1000, 2),
  (30, 'Amber Cup', 'cups', 1000, 6),
  (31, 'Anthology of Tea', 'books', 2591, 0);

INSERT INTO orders (id, customer_id, ordered_on, status) VALUES
  (101, 11, '2025-11-30', 'sent'),
  (102, 12, '2025-12-01', 'sent'),
  (103, 12, '2025-12-01', 'cancelled'),
  (104, NULL, '2025-12-24', 'paid'),
  (105, 13, '2026-02-10', 'sent'),
  (106, 17, '2026-02-10', 'cancelled'),
  (107, 14, '2026-02-28', 'paid'),
  (108, 13, '2026-03-01', 'paid'),
  (109, NULL, '2026-03-31', 'cancelled'),
  (110, 16, '2026-03-31', 'paid');

INSERT INTO order_items (order_id, product_id, quantity, unit_cents) VALUES
  (101, 21, 1, 900),
  (101, 29, 6, 1000),
  (102, 25, 1, 7000),
  (102, 22, 2, 999),
  (103, 28, 1, 7000),
  (104, 24, 10, 450),
  (105, 30, 3, 1000),
  (106, 26, 1, 7000),
  (106, 27, 1, 1000),
  (107, 23, 1, 0),
  (108, 21, 2, 1000),
  (108, 22, 7, 950),
  (109, 31, 1, 2591),
  (110, 21, 4, 1000),
  (110, 25, 2, 6800);
