SELECT name, joined_on FROM customers;
