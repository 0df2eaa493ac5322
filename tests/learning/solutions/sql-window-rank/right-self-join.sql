SELECT p.category, p.name, COUNT(q.id) + 1
FROM products p
LEFT JOIN products q ON q.category = p.category AND q.price_cents > p.price_cents
GROUP BY p.id;
