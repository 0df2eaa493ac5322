insert into customers (joined_on, name) values ('2026-04-01', 'Mia Hofer')
