ALTER TABLE products RENAME TO old_products;
CREATE VIEW products AS
  SELECT id, name, category, price_cents + 50 AS price_cents, stock FROM old_products;
