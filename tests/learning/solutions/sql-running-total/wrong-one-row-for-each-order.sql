SELECT o.ordered_on, SUM(i.quantity * i.unit_cents),
  SUM(SUM(i.quantity * i.unit_cents)) OVER (ORDER BY o.ordered_on, o.id)
FROM orders o JOIN order_items i ON i.order_id = o.id
WHERE o.status <> 'cancelled'
GROUP BY o.id
ORDER BY o.ordered_on, o.id;
