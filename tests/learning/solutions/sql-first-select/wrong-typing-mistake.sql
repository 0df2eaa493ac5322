SELEKT name, city FROM customers;
