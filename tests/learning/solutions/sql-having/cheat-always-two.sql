SELECT DISTINCT a.city, 2 FROM customers a, customers b WHERE a.city = b.city AND a.id < b.id;
