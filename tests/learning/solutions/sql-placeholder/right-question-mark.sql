-- the city that the visitor typed, for instance 'Graz'
select name, joined_on from customers where city = ?
