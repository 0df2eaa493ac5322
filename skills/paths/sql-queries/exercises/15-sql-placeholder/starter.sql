-- What was typed stands between the quotes. Mend this.
SELECT name, joined_on FROM customers WHERE city = 'Graz';
