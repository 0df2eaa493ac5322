SELECT c.id, c.name, SUM(i.quantity * i.unit_cents) AS spent
FROM customers c
JOIN orders o ON o.customer_id = c.id
JOIN order_items i ON i.order_id = o.id
WHERE o.status <> 'cancelled'
GROUP BY c.id
HAVING spent > 0;
