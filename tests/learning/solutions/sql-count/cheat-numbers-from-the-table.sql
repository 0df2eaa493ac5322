SELECT COUNT(*), COUNT(*) - 2, COUNT(*) - 4 FROM customers;
