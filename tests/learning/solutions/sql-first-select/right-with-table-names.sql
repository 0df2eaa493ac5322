select c.name, c.city from customers as c
